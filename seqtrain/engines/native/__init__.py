"""The native engine: GRU, LSTM and RNN in C++, compiled on install, called through ctypes."""
