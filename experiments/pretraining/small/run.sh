#!/bin/sh
# The whole experiment: pre-training BERT-mini on novels and WikiText-2, its curves, and fine-tuning
# with it and without. DATA holds novels/, wikitext2/, wnut17/, codah/ and squad/; what is done
# already in OUT is not done again.
#   sh experiments/pretraining/small/run.sh DATA OUT
set -eu
data=$1
out=$2
here=experiments/pretraining/small
vocabulary=tokenizer.vocab=$out/vocab.txt

mkdir -p "$out"
test -e "$out/corpus.txt" || python -m experiments.pretraining.small.corpus --novels "$data/novels" \
    --wikitext "$data/wikitext2/train.txt" --out "$out/corpus.txt"
test -e "$out/vocab.txt" || bert-tf vocab --input "$out/corpus.txt" --size 8000 --out "$out/vocab.txt"
bert-tf pretrain $here/mini.yaml --out "$out/mini" --set "data.path=$out/corpus.txt" "$vocabulary"
python -m experiments.curves "$out/mini" --out experiments/results/mini.png

test -e "$out/squad_by_article" || python -m experiments.squad.split_by_article \
    "$data/squad/dev-v1.1.json" --train 38 --out "$out/squad_by_article"
finetune() { # name, folder of the data
    bert-tf finetune "$here/$1.yaml" --out "$out/$1" \
        --set "data.path=$2" "$vocabulary" "init.checkpoint=$out/mini"
    bert-tf finetune "$here/$1.yaml" --out "$out/$1_from_scratch" --set "data.path=$2" "$vocabulary"
}
finetune wnut17 "$data/wnut17"
finetune codah "$data/codah"
finetune squad_by_article "$out/squad_by_article"

for name in wnut17 codah squad_by_article; do
    for run in "$name" "${name}_from_scratch"; do
        printf '\n%s\n' "$run"
        cat "$out/$run/summary.tsv"
    done
done
