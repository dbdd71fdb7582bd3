# Two images: `docker build --target compile .` has the compiler, the default runs compiled programs.
FROM python:3.11-slim AS wheel
COPY . /source
RUN pip wheel --no-deps -w /wheel /source

FROM python:3.11-slim AS compile
COPY constraints.txt /
RUN --mount=from=wheel,source=/wheel,target=/wheel pip install -c /constraints.txt /wheel/*.whl
RUN useradd --create-home mgx
USER mgx
ENTRYPOINT ["mgx-driver"]

FROM python:3.11-slim AS run
COPY constraints.txt /
# load() and a run need these alone; docs/deploy.md says why they are named here
RUN pip install -c /constraints.txt iree-base-runtime numpy msgpack ml_dtypes
RUN --mount=from=wheel,source=/wheel,target=/wheel pip install --no-deps /wheel/*.whl
RUN useradd --create-home mgx
USER mgx
CMD ["python"]
