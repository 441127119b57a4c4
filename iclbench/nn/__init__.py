"""The harness's sequence model: embedding, blocks, read-out, factored logits, generation.

Plugins provide the mixers; nothing here knows an architecture by name. `training_form` chooses the
module that training calls. This package may import `api` and the modules between `api` and it.
"""
