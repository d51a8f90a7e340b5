"""`python -m bert_tf`: the command line."""

import sys

from bert_tf.cli.parser import main

sys.exit(main())
