// ptxgen/driver/steps.hpp - what a program had the driver do, step by step
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ptxgen/driver/api.hpp"

/// The steps of a recorded program, in the order in which they took effect. Addresses are those of
/// the recorded process. Contents are named by their hash (XXH3-128, 32 hexadecimal digits).
namespace ptxgen::inline v0::driver {

/// `depth` x `height` rows of `width` bytes; rows are `pitch` bytes apart, slices `pitch` *
/// `slice_height`.
struct StepRows {
  std::uint64_t address = 0;
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t depth = 1;
  std::uint64_t pitch = 0;
  std::uint64_t slice_height = 1;
};

/// A `.global` or `.const` variable of a loaded module.
struct StepVariable {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// A module is loaded; `module` is its number.
struct LoadStep {
  std::uint64_t module = 0;
  std::string ptx;  ///< hash of the text
  std::vector<StepVariable> variables;
};
struct UnloadStep {
  std::uint64_t module = 0;
};

enum class StepMemory : std::uint8_t {
  Device,
  Managed,
  Pinned,      ///< host memory of the driver; the address is the device's
  Registered,  ///< host memory of the program, at its device address
  Stream,      ///< stream-ordered: of a memory pool
  Array,       ///< a CUDA array
  Mapped,      ///< a mapping of cuMemMap that can be accessed from now on
  Graph,       ///< of an allocation node of a graph; a GraphMemoryStep has its address
};
/// An array has no address. In a recording its bytes (rows, slices and layers without gaps) begin
/// at one from here on, where no memory is.
inline constexpr std::uint64_t kFirstArrayAddress = std::uint64_t{1} << 63;
/// CUDA_ARRAY3D_DESCRIPTOR. Sizes are in elements; `format` and `flags` are cuda.h's.
struct StepArray {
  std::uint64_t width = 0;
  std::uint64_t height = 0;  ///< 0: 1D
  std::uint64_t depth = 0;   ///< or layers; 0: neither
  std::uint32_t format = 0;
  std::uint32_t channels = 0;
  std::uint32_t flags = 0;
};
/// Memory is allocated. The n-th allocation of all has the name "memory<n>", of an array
/// "array<n>".
struct AllocateStep {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  StepMemory memory = StepMemory::Device;
  std::uint8_t fill = 0;  ///< every byte, if there is no `content`
  std::string content;    ///< hash of its bytes before anything wrote them
  StepArray array;        ///< of an Array
};
/// Also the end of an array.
struct FreeStep {
  std::uint64_t address = 0;
};

/// The host writes bytes: packed rows.
struct WriteStep {
  StepRows to;
  std::string content;  ///< hash
  bool unseen = false;  ///< found changed, without a call: managed or pinned memory
};
/// Rows of one size from device memory to device memory, which may be an array.
struct CopyStep {
  StepRows to;
  StepRows from;
};
/// `rows.width` counts bytes, a multiple of `element_bytes` (1, 2, 4).
struct FillStep {
  StepRows to;
  std::uint32_t value = 0;
  std::uint32_t element_bytes = 1;
};
/// The host reads bytes: packed rows.
struct ReadStep {
  StepRows from;
  std::string hash;
};

/// Bytes that a launch changed: from the first to the last of one allocation or variable.
struct StepOutput {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::string hash;  ///< of the bytes after the launch; the recording may hold them, too
};
struct LaunchStep {
  std::uint64_t module = 0;
  std::string kernel;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cluster[3] = {0, 0, 0};  ///< 0: none requested
  std::uint32_t shared_bytes = 0;        ///< dynamic
  bool cooperative = false;
  std::vector<std::byte> arguments;  ///< the parameter block
  std::vector<StepOutput> outputs;   ///< by address
  std::string failure;               ///< name of the error that it ended with, or empty
};

/// A call of virtual memory management, of those of its arguments that are not 0. Handles have
/// numbers. Memory that becomes accessible is an AllocateStep of `Mapped` after it, and has a
/// FreeStep before it is no more.
struct VirtualStep {
  enum class Kind : std::uint8_t { Reserve, Unreserve, Create, Release, Map, Unmap, Access };
  Kind kind = Kind::Reserve;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t handle = 0;
  std::uint64_t value = 0;  ///< Reserve: the alignment; Access: CUmemAccess_flags
};

/// An allocation node of a graph was added, which reserves addresses; 0 bytes: they are free again.
struct GraphMemoryStep {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};
/// A graph that allocates or frees is launched: its nodes are the steps up to an EndGraphStep. They
/// are one frame: launches among them have no outputs.
struct BeginGraphStep {};
struct EndGraphStep {
  std::vector<StepOutput> outputs;  ///< of its launches, copies and fills
  std::string failure;
};

/// What a texture or surface object reads: CUDA_RESOURCE_DESC, with cuda.h's numbers.
struct StepResource {
  enum class Kind : std::uint8_t { Array, Linear, Pitched };
  Kind kind = Kind::Array;
  std::uint64_t address = 0;  ///< of an array: its first
  std::uint32_t format = 0;   ///< of Linear and Pitched
  std::uint32_t channels = 0;
  std::uint64_t width = 0;  ///< Linear: bytes; Pitched: elements
  std::uint64_t height = 0;
  std::uint64_t pitch = 0;  ///< bytes
};
/// How a texture object is read: CUDA_TEXTURE_DESC, with cuda.h's numbers. Floats are their bits.
struct StepSampler {
  std::uint32_t address_modes[3] = {0, 0, 0};
  std::uint32_t filter = 0;
  std::uint32_t flags = 0;
  std::uint32_t anisotropy = 0;
  std::uint32_t border[4] = {0, 0, 0, 0};
  std::uint32_t mipmap[4] = {0, 0, 0, 0};  ///< filter; bits of bias, minimum and maximum level
};
/// CUDA_RESOURCE_VIEW_DESC: format, width, height, depth, first and last level, first and last
/// layer.
struct StepView {
  std::uint64_t values[8] = {0, 0, 0, 0, 0, 0, 0, 0};
};
/// A texture or surface object is created; `object` is its handle.
struct ObjectStep {
  bool surface = false;
  std::uint64_t object = 0;
  StepResource resource;
  StepSampler sampler;  ///< of a texture
  std::optional<StepView> view;
};
struct DestroyStep {
  bool surface = false;
  std::uint64_t object = 0;
};

/// cuFuncSetAttribute, cuKernelSetAttribute.
struct AttributeStep {
  std::uint64_t module = 0;
  std::string kernel;
  int attribute = 0;
  int value = 0;
};
/// cuCtxSetLimit.
struct LimitStep {
  int limit = 0;
  std::uint64_t value = 0;
};

using Step =
    std::variant<LoadStep, UnloadStep, AllocateStep, FreeStep, WriteStep, CopyStep, FillStep,
                 ReadStep, LaunchStep, VirtualStep, GraphMemoryStep, BeginGraphStep, EndGraphStep,
                 ObjectStep, DestroyStep, AttributeStep, LimitStep>;

/// Contents by their hash.
using StepContents = std::vector<std::pair<std::string, std::vector<std::byte>>>;

}  // namespace ptxgen::inline v0::driver
