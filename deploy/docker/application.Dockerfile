# What a streams application needs: Kohort with Spark, and Java. From a clone:
#
#   docker build -f deploy/docker/application.Dockerfile -t kohort-application .
#
# An application is an image on top of it, which the chart in deploy/helm runs:
#
#   FROM kohort-application
#   COPY main.py /app/main.py
#
# The health check asks what the program gives as `application_server`: HOST:8080, with the container's own name as HOST. One
# that gives none is never healthy: run it with --no-healthcheck.
FROM python:3.13-slim-trixie AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY spark ./spark
COPY src ./src
COPY docs/examples/flight_delays.py ./docs/examples/flight_delays.py
RUN python -m venv /opt/kohort \
    && /opt/kohort/bin/pip install --no-cache-dir --constraint constraints.txt . ./spark

FROM python:3.13-slim-trixie
# Debian's security updates are wanted, so that no version is pinned. tini ends what the JVM leaves.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin kohort \
    && install --directory --owner kohort --group kohort --mode 0700 /var/lib/kohort
COPY --from=build /opt/kohort /opt/kohort
ENV PATH=/opt/kohort/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STATE_DIR=/var/lib/kohort
USER 10001:10001
WORKDIR /app
VOLUME ["/var/lib/kohort"]
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m --retries=3 \
    CMD ["python", "-c", "import socket, urllib.request as r; r.urlopen(f'http://{socket.gethostname()}:8080/healthz', timeout=4)"]
# Only Python gets the signal to stop: the epoch that runs still needs the JVM.
ENTRYPOINT ["tini", "--"]
CMD ["python", "/app/main.py"]
