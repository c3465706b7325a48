# The gateway in an image: models inside, no root, nothing written outside /data, /keys and /tmp.
# docker build --tag textveil . ; how to run it: docs/do/containers.md
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE NOTICE ./
COPY packages/textveil-bench/hatch_urls.py packages/textveil-bench/
COPY src src
RUN python3 -m venv /opt/textveil \
    && /opt/textveil/bin/pip install --no-cache-dir --constraint constraints.txt '.[gateway,store,redis]' \
    && /opt/textveil/bin/pip uninstall --yes setuptools pip

FROM ${BASE}
LABEL org.opencontainers.image.title="textveil" \
      org.opencontainers.image.description="Gateway to a language model that protects requests and restores answers" \
      org.opencontainers.image.licenses="Apache-2.0 AND BSD-3-Clause AND CC-BY-4.0 AND CC-BY-SA-3.0 AND CC-BY-SA-4.0 AND MIT AND NAIST-2003 AND Unicode-3.0 AND LicenseRef-WordNet"
# The owner of the volumes, in mode 0700: a volume that is new takes over both.
RUN install --directory --owner 10001 --group 10001 --mode 0700 /data /keys
COPY --from=build /opt/textveil /opt/textveil
COPY deploy/image.yaml /etc/textveil/gateway.yaml
ENV PATH=/opt/textveil/bin:$PATH \
    ORT_DISABLE_TELEMETRY=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HF_HUB_OFFLINE=1 \
    HOME=/tmp
WORKDIR /data
USER 10001:10001
VOLUME ["/data", "/keys"]
EXPOSE 8600
# /ready, and not /health: it also says that the models are loaded and the store answers.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8600/ready', timeout=4)"]
ENTRYPOINT ["textveil", "gateway", "--config", "/etc/textveil/gateway.yaml"]
