# Two images of one release: `server` (web, dispatcher, commands) and `worker` (head and machines of a fleet).
#   docker build --target server -t knowngood .
#   docker build --target worker -t knowngood-worker .
# Both hold the same Python, to the patch version, and the same packages: Ray asks that of all who talk to each other.

FROM python:3.11-bookworm AS made
# Nobody may write there later: what is not compiled here is compiled at every start.
ENV UV_PYTHON_INSTALL_DIR=/opt/python UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
WORKDIR /srv/knowngood
COPY requirements.lock requirements-fleet.lock ./
# uv is one of the locked packages, and makes the rest. Its Python runs on any glibc from 2.17 on, so on both bases below.
RUN python -m venv /tmp/tools \
 && sed -n '/^uv==/,/[^\\]$/p' requirements.lock > /tmp/uv.lock \
 && /tmp/tools/bin/pip install --no-cache-dir --require-hashes -r /tmp/uv.lock \
 && /tmp/tools/bin/uv python install 3.11 \
 && /tmp/tools/bin/uv venv --managed-python --python 3.11 /opt/knowngood \
 && VIRTUAL_ENV=/opt/knowngood /tmp/tools/bin/uv pip install --no-cache --require-hashes -r requirements-fleet.lock
COPY pyproject.toml README.md LICENSE GLOSSARY.md CHANGELOG.md CONTRIBUTING.md ./
COPY docs docs
COPY app app
COPY workers workers
COPY repros repros
COPY migrations migrations
RUN VIRTUAL_ENV=/opt/knowngood /tmp/tools/bin/uv pip install --no-cache --no-deps . \
 && cd / && /opt/knowngood/bin/python -c "from knowngood.web.html import static_files, templates; templates.load_templates(templates.make_templates(static_files.read_assets()))"

FROM debian:bookworm-slim AS server
COPY --from=made /opt/python /opt/python
COPY --from=made /opt/knowngood /opt/knowngood
# A volume that is new takes owner and mode from what stands in its place here.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data knowngood \
 && install -d -o knowngood -g knowngood /data
ENV PATH=/opt/knowngood/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp KNOWNGOOD_DATA_DIR=/data PYTHONDONTWRITEBYTECODE=1
USER knowngood
WORKDIR /data
EXPOSE 8000
CMD ["knowngood", "serve", "--host", "0.0.0.0"]

# The driver comes from the host; torch brings its own CUDA. Inductor and Triton compile with g++.
FROM nvidia/cuda:12.9.1-base-ubuntu24.04 AS worker
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates g++ git make \
 && rm -rf /var/lib/apt/lists/*
COPY --from=made /opt/python /opt/python
COPY --from=made /opt/knowngood /opt/knowngood
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data knowngood \
 && install -d -o knowngood -g knowngood /data
ENV PATH=/opt/knowngood/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/data KNOWNGOOD_DATA_DIR=/data PYTHONDONTWRITEBYTECODE=1
USER knowngood
WORKDIR /data
CMD ["knowngood", "worker", "--ray", "ray-head:6379"]
