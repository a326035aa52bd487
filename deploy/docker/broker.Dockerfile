# A broker. From a clone: docker build -f deploy/docker/broker.Dockerfile -t kohort .
#
#   docker run -p 9092:9092 -v kohort:/var/lib/kohort kohort --advertise localhost
#
# What is written behind the image's name is added to `kohort serve --data-dir … --listen :9092 --metrics 0.0.0.0:9090`;
# settings come as variables, too: -e KOHORT_LOG_RETENTION_MS=86400000.
FROM python:3.13-slim-trixie AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY docs/examples/flight_delays.py ./docs/examples/flight_delays.py
ARG EXTRAS=security
RUN python -m venv /opt/kohort \
    && /opt/kohort/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.13-slim-trixie
RUN useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin kohort \
    && install --directory --owner kohort --group kohort --mode 0700 /var/lib/kohort
COPY --from=build /opt/kohort /opt/kohort
ENV PATH=/opt/kohort/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001:10001
VOLUME ["/var/lib/kohort"]
EXPOSE 9092 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10m --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:9090/healthz', timeout=4)"]
ENTRYPOINT ["kohort", "serve", "--data-dir", "/var/lib/kohort", "--listen", ":9092", "--metrics", "0.0.0.0:9090"]
