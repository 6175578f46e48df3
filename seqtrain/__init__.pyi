"""The public names and the modules that define them: the only list of both."""

from seqtrain.cli.session import fit as fit
from seqtrain.comparison.compare import compare as compare
from seqtrain.config import Config as Config
from seqtrain.config import load_config as load_config
from seqtrain.workflows.check import check as check
from seqtrain.workflows.classifier import Classifier as Classifier
from seqtrain.workflows.classifier import Prediction as Prediction
from seqtrain.workflows.evaluate import evaluate as evaluate
from seqtrain.workflows.events import Run as Run
from seqtrain.workflows.loading import load as load
from seqtrain.workflows.predict import predict as predict
from seqtrain.workflows.reconstruct import reconstruct as reconstruct
from seqtrain.workflows.steps import predict_steps as predict_steps

__version__: str
