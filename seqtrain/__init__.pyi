"""The public names and the modules that define them: the only list of both."""

from seqtrain.api.check import check as check
from seqtrain.api.evaluate import evaluate as evaluate
from seqtrain.api.load import load as load
from seqtrain.api.predict import predict as predict
from seqtrain.api.predict import predict_steps as predict_steps
from seqtrain.api.predictors import Classifier as Classifier
from seqtrain.api.predictors import Prediction as Prediction
from seqtrain.api.reconstruct import reconstruct as reconstruct
from seqtrain.api.run_events import Run as Run
from seqtrain.cli.session import fit as fit
from seqtrain.cli.session import init as init
from seqtrain.comparison.compare import compare as compare
from seqtrain.config import Config as Config
from seqtrain.config import load_config as load_config

__version__: str
