FROM python:3.11-bookworm
# The full image brings g++, make and the Python headers that Inductor and C++ extensions compile with.
WORKDIR /srv/knowngood
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE GLOSSARY.md DECISIONS.md CHANGELOG.md ./
COPY docs docs
COPY app app
COPY workers workers
COPY repros repros
COPY migrations migrations
RUN pip install --no-cache-dir --no-deps .
