# TensorFlow Serving with an export inside: a folder of versions, as `bert-tf export --version N`
# writes it. docs/how_to/containers.md describes how it is built and run.

FROM tensorflow/serving:2.20.0
# The folder of the export in the build context, and the name that clients ask for.
ARG EXPORT
ARG NAME=model
COPY ${EXPORT} /models/${NAME}
COPY serving/batching.config serving/monitoring.config /config/
# docs/how_to/serving.md, "Fast answers".
ENV MODEL_NAME=${NAME} TF_ONEDNN_ASSUME_FROZEN_WEIGHTS=1
USER 65534
EXPOSE 8500 8501
# The image has neither curl nor Python.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/localhost/8501 && printf 'GET /v1/models/%s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' \"$MODEL_NAME\" >&3 && grep -q AVAILABLE <&3"]
CMD ["--enable_batching", "--batching_parameters_file=/config/batching.config", "--monitoring_config_file=/config/monitoring.config"]
