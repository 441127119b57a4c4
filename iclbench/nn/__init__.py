"""The harness's sequence model: embedding, blocks, read-out, factored logits, generation.

It knows no architecture by name: a plugin's mixers are passed in.
It may import `api` and the modules beside it (precision, devices, files), never `training`.
"""
