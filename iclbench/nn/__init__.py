"""The harness's sequence model: embedding, blocks, read-out, factored logits, generation.

Plugins provide the mixers; nothing here knows an architecture by name. `training_form` chooses the
module that training calls. `local_language_model` reads language models from files, for graders
and models of plugins, which may not import one another. This package may import `api` and the
modules between `api` and it.
"""
