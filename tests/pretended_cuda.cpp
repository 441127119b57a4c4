// What a build of torch for CPUs lacks to accept tensors and generators that say `cuda`.
// See pretended_cuda.py.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>

namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, FakeGuardImpl<DeviceType::CUDA>);
}

namespace at {

struct GeneratorOnCuda : CPUGeneratorImpl {
  GeneratorOnCuda() { device_ = Device(DeviceType::CUDA, 0); }
};

// torch looks for hooks of this name.
struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  Generator getNewGenerator(DeviceIndex) const override {
    return make_generator<GeneratorOnCuda>();
  }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
