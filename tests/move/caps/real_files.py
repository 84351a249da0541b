"""Requirements of real projects: of each file the lines with a bound and the few around, where it is, and what a reader
of it says of each bound, by hand.

Evidence is taken to be the best that there can be (everything was measured, and passes), so that what is judged here is
the text alone: whether it gives a reason, and whether what was measured is about it at all. The catalogue is that of
this release, and releases are settled up to 2.13.
"""

from typing import NamedTuple

GOES, NEEDED, OPEN, IDLE = "removable", "needed", "not_measured", "idle"


class RealFile(NamedTuple):
    """`judged` has by line the bounds, as they are found, with what is to be said of each."""

    source: str
    file: str
    text: str
    judged: dict[tuple[int, str], str]
    subject: str = "Initial commit"


REAL_FILES = (
    RealFile(
        "kyutai-labs/moshi 07bdd3d moshi/pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n    "sphn >= 0.1.4",\n    "torch >= 2.2.0, < 2.5",\n]\n',
        {(4, "torch<2.5"): GOES},
    ),
    RealFile(
        "MIC-DKFZ/nnUNet 2.7.0 pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n    "torch>=2.1.2,!=2.9.*",  # 3D conv regression under AMP\n]\n',
        {(3, "torch!=2.9.*"): OPEN},
    ),
    RealFile(
        "Lightning-AI/pytorch-lightning 01d2d55 requirements/pytorch/base.txt",
        "requirements/pytorch/base.txt",
        "# NOTE: the upper bound for the package version is only set for CI stability, and it is dropped while\n\n"
        "numpy >=1.17.2, <1.24.2\ntorch >=1.11.0, <=2.0.0\n",
        {(4, "torch<=2.0.0"): OPEN},
    ),
    RealFile(
        "Lightning-AI/pytorch-lightning requirements/fabric/base.txt",
        "requirements/fabric/base.txt",
        "# NOTE: the upper bound for the package version is only set for CI stability, and it is dropped while\n\n"
        "torch >=2.1.0, <2.6.0\nfsspec[http] >=2022.5.0, <2024.4.0\n",
        {(3, "torch<2.6.0"): GOES},
        "bump torch to 2.5",
    ),
    RealFile(
        "InternLM/lmdeploy 0048442 requirements/runtime_cuda.txt",
        "requirements/runtime_cuda.txt",
        'torch<=2.6.0,>=2.0.0\ntorchvision<=0.21.0,>=0.15.0\ntriton<=3.2.0,>=3.0.0; sys_platform == "linux"\n',
        {(1, "torch<=2.6.0"): NEEDED, (2, "torchvision<=0.21.0"): OPEN, (3, "triton<=3.2.0"): NEEDED},
    ),
    RealFile(
        "InternLM/lmdeploy 002e7cf requirements/runtime_ascend.txt",
        "requirements/runtime_ascend.txt",
        "torch<=2.4.0,>=2.3.1\ntorch-npu==2.3.1\ntransformers\n",
        {(1, "torch<=2.4.0"): OPEN},
    ),
    RealFile(
        "mosaicml/composer 00084aa setup.py",
        "setup.py",
        "install_requires = [\n    'torchvision>=0.13.1,<0.17',\n    'torch>=1.13.1,<2.1.1',\n]\n",
        {(2, "torchvision<0.17"): OPEN, (3, "torch<2.1.1"): OPEN},
    ),
    RealFile(
        "mosaicml/llm-foundry 003ac6a setup.py",
        "setup.py",
        "install_requires = [\n    'torch>=2.6.0,<2.6.1',\n]\n"
        "extra_deps['gpu-flash2'] = [\n    'flash-attn==2.7.4.post1',\n]\n",
        {(2, "torch<2.6.1"): OPEN},
    ),
    RealFile(
        "mosaicml/streaming 007f745 setup.py",
        "setup.py",
        'install_requires = [\n    "torch>=1.10,<2",\n    "torchvision>=0.10",\n]\n',
        {(2, "torch<2"): OPEN},
    ),
    RealFile(
        "jdb78/pytorch-forecasting b5918e0 pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n  "numpy<2.0.0",\n  "torch >=2.0.0,!=2.0.1,<3.0.0",\n]\n',
        {(4, "torch<3.0.0"): IDLE, (4, "torch!=2.0.1"): OPEN},
    ),
    RealFile(
        "wasserth/TotalSegmentator 02fba9c setup.py",
        "setup.py",
        "install_requires=[\n    'torch>=2.1.2,<2.6.0',  # <2.6.0 can be removed when using new nnunet version with "
        "this change: https://github.com/MIC-DKFZ/nnUNet/pull/2683\n]\n",
        {(2, "torch<2.6.0"): OPEN},
    ),
    RealFile(
        "allenai/allennlp 001ebaf setup.py",
        "setup.py",
        'install_requires=[\n    "torch>=1.6.0,<1.11.0",\n    "torchvision>=0.8.1,<0.12.0",\n]\n',
        {(2, "torch<1.11.0"): OPEN, (3, "torchvision<0.12.0"): OPEN},
    ),
    RealFile(
        "facebookresearch/fairchem 0141f9e packages/fairchem-core/pyproject.toml",
        "packages/fairchem-core/pyproject.toml",
        '[project]\ndependencies = [\n    "torch~=2.6.0",\n    "numpy>=2.0,<2.3",\n]\n',
        {(3, "torch~=2.6.0"): GOES},
        "Relax numpy (#1290)",
    ),
    RealFile(
        "rajboopathiking/TorchDire setup.py",
        "setup.py",
        'install_requires=[\n    "torch>=2.0.0,<2.3.0",\n    "numpy<2",\n    "torchvision>=0.15.0",\n]\n',
        {(2, "torch<2.3.0"): GOES},
    ),
    RealFile(
        "huggingface/lerobot 0005508 pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n    "torch>=2.2.1,<2.8.0", # TODO: Bumb dependency\n'
        '    "torchvision>=0.21.0,<0.23.0", # TODO: Bumb dependency\n]\n',
        {(3, "torch<2.8.0"): NEEDED, (4, "torchvision<0.23.0"): OPEN},
    ),
    RealFile(
        "m-bain/whisperX 03f5017 pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n    "torch~=2.8.0",\n    "torchaudio~=2.8.0",\n    "torchvision~=0.23.0",\n]\n'
        '[tool.uv.sources]\ntorch = [\n  { index = "pytorch-cpu", marker = "sys_platform == \'darwin\'" },\n]\n',
        {(3, "torch~=2.8.0"): NEEDED, (4, "torchaudio~=2.8.0"): OPEN, (5, "torchvision~=0.23.0"): OPEN},
    ),
    RealFile(
        "awslabs/gluonts 046400d requirements/requirements-pytorch.txt",
        "requirements/requirements-pytorch.txt",
        "torch>=1.9,<3\npytorch_lightning>=1.8,<2.2\n# Need to pin protobuf (for now)\nprotobuf~=3.19.0\n",
        {(1, "torch<3"): IDLE, (2, "pytorch-lightning<2.2"): OPEN},
    ),
    RealFile(
        "autogluon/autogluon 007e80a multimodal/setup.py",
        "multimodal/setup.py",
        'install_requires = [\n    "torch>=1.9,<1.13",\n    "torchvision<0.14.0",\n    "torchtext<0.14.0",\n]\n',
        {(2, "torch<1.13"): OPEN, (3, "torchvision<0.14.0"): OPEN},
    ),
    RealFile(
        "nerfstudio-project/gsplat setup.py",
        "setup.py",
        "install_requires=[\n    # Upper bound: torch 2.12 dropped support for older CUDA drivers,\n"
        "    # pull a wheel that fails at import time. Pin to the last known-good\n"
        '    "torch>=2.0,<2.12",\n]\n',
        {(4, "torch<2.12"): OPEN},
    ),
    RealFile(
        "thatneos/Simple-RVC pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n  "pedalboard",\n  "torch<2.6",\n  "torchaudio<2.6",\n  "torchvision<0.21",\n]\n',
        {(4, "torch<2.6"): NEEDED, (5, "torchaudio<2.6"): OPEN, (6, "torchvision<0.21"): OPEN},
    ),
    RealFile(
        "kaushikd24/GRPO-Package setup.py",
        "setup.py",
        'install_requires=[\n    "torch>=2.2,<2.4",\n    "peft>=0.11.0",\n]\n',
        {(2, "torch<2.4"): GOES},
        "Add files via upload",
    ),
    RealFile(
        "Kwaai-AI-Lab/OpenAI-Petal setup.py",
        "setup.py",
        'install_requires=[\n    "torch>=1.12.0,<2.4.0",  # Compatible with Petals and hivemind - tested range\n'
        '    "triton<3.0",  # bitsandbytes 0.41.1 requires triton.ops module (removed in 3.0+)\n]\n',
        {(2, "torch<2.4.0"): OPEN, (3, "triton<3.0"): OPEN},
    ),
    RealFile(
        "cja5553/ACS_demo_postoperative_prediction_w_clinical_notes setup.py",
        "setup.py",
        "install_requires=[\n    # PyTorch — not pinned to the +cu118 local wheel because PyPI doesn't\n"
        '    # pytorch.org; we specify a compatible version range. See README.\n    "torch>=2.0,<2.3",\n]\n',
        {(4, "torch<2.3"): OPEN},
    ),
    RealFile(
        "pabloppp/pytorch-tools setup.py",
        "setup.py",
        "install_requires=[\n    'torch==1.*',\n    'torchvision',\n]\n",
        {(2, "torch==1.*"): OPEN},
    ),
    RealFile(
        "stanford-cs336/assignment2-systems pyproject.toml",
        "pyproject.toml",
        "[project]\ndependencies = [\n    \"torch~=2.6.0; sys_platform != 'darwin' or platform_machine != 'x86_64'\",\n"
        "    \"torch~=2.2.2; sys_platform == 'darwin' and platform_machine == 'x86_64'\", # Intel Macs\n]\n",
        {(3, "torch~=2.6.0"): GOES, (4, "torch~=2.2.2"): OPEN},
    ),
    RealFile(
        "a Dockerfile that installs from the index of the CPU",
        "Dockerfile",
        'COPY requirements.txt .\nRUN pip install --no-cache-dir "torch<2.3" '
        "--index-url https://download.pytorch.org/whl/cpu && \\\n    pip install --no-cache-dir -r requirements.txt\n",
        {(2, "torch<2.3"): OPEN},
    ),
    RealFile(
        "a Dockerfile of Demucs and WhisperX",
        "Dockerfile",
        "RUN python3 -m venv /opt/venv\nENV PATH=/opt/venv/bin:$PATH\n"
        'RUN pip3 install --no-cache-dir "torch<2.6" "torchaudio<2.6" demucs whisperx soundfile\n',
        {(3, "torch<2.6"): NEEDED, (3, "torchaudio<2.6"): OPEN},
    ),
    RealFile(
        "a Dockerfile of Wan2GP",
        "Dockerfile",
        "RUN pip3 install torch==2.7.1 torchvision==0.22.1 torchaudio==2.7.1 "
        '--index-url https://download.pytorch.org/whl/cu128\nRUN pip3 install -U "triton<3.4"\n\n\nRUN pip3 install '
        "flash-attn==2.7.2.post1\n",
        {(2, "triton<3.4"): NEEDED},
    ),
    RealFile(
        "a Dockerfile with reasons in Turkish",
        "Dockerfile",
        '# 3. PyTorch — numpy 1.26 ile uyumlu sürüm\nRUN pip install --no-cache-dir "torch>=2.0,<2.5" '
        '"torchvision<0.20"\n',
        {(2, "torch<2.5"): OPEN, (2, "torchvision<0.20"): OPEN},
    ),
    RealFile(
        "opendp/smartnoise-sdk synth/pyproject.toml",
        "pyproject.toml",
        '[tool.poetry.dependencies]\npython = ">=3.7,<=3.11"\nopacus = "^0.14.0"\ntorch = "<2.0.0"\n',
        {(4, "torch<2.0.0"): OPEN},
    ),
    RealFile(
        "run-llama/llama_index llama-index-llms-ipex-llm/pyproject.toml",
        "pyproject.toml",
        '[tool.poetry.dependencies]\nllama-index-core = "^0.10.0"\ntorch = "<2.2.0"\n'
        'ipex-llm = {allow-prereleases = true, extras = ["all"], version = "*"}\n',
        {(3, "torch<2.2.0"): GOES},
        "Add ipex-llm (#12322)",
    ),
    RealFile(
        "huggingface/lighteval 452e031 pyproject.toml",
        "pyproject.toml",
        '[project]\ndependencies = [\n    # Base dependencies\n    "transformers>=4.38.0",\n'
        '    "torch>=2.0,<2.5",\n]\n',
        {(5, "torch<2.5"): GOES},
        "Pin torch version (#201)",
    ),
    RealFile(
        "zhenqis123/EgoEMG setup.py",
        "setup.py",
        'install_requires=[\n    "torch>=2.2,<2.3",\n    "torchvision>=0.17,<0.18",\n]\n',
        {(2, "torch<2.3"): NEEDED, (3, "torchvision<0.18"): OPEN},
    ),
    RealFile(
        "InternLM/lmdeploy 00596da requirements/runtime.txt",
        "requirements/runtime.txt",
        'torch<=2.3.1,>=2.0.0\ntorchvision<=0.18.1,>=0.15.0\ntriton>=2.1.0,<=3.0.0; sys_platform == "linux"\n',
        {(1, "torch<=2.3.1"): NEEDED, (2, "torchvision<=0.18.1"): OPEN, (3, "triton<=3.0.0"): NEEDED},
    ),
)
