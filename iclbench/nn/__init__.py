"""The harness's sequence model: embedding, blocks, read-out, factored logits, generation.

It knows no architecture by name; plugins pass their mixers in. `training_form` chooses the module
that training calls. It may import `api` and the modules beside it, never `training`.
"""
