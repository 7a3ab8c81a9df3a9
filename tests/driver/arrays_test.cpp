// tests/driver/arrays_test.cpp - CUDA arrays, texture and surface objects of the emulated driver
#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "emulated_context.hpp"

using namespace ptxgen;
using namespace ptxgen::driver;
using Catch::Contains;
using test::EmulatedContext;

namespace {

using Floats = std::vector<float>;

CUDA_ARRAY3D_DESCRIPTOR array_of(std::size_t width, std::size_t height, std::size_t depth = 0,
                                 unsigned flags = 0, unsigned channels = 1) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, channels, flags};
}

CUarray make(EmulatedContext& gpu, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  CUarray array = nullptr;
  const CUresult result = gpu.api.array_3d_create(&array, &descriptor);
  if (result != CUDA_SUCCESS) FAIL(gpu.log());
  return array;
}

Floats counting(std::size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// A copy of a box between host memory without gaps and an array.
CUDA_MEMCPY3D box_of(CUarray array, float* host, bool to_array, std::size_t width,
                     std::size_t height, std::size_t depth) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = to_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
  copy.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
  copy.srcHost = copy.dstHost = host;
  copy.srcArray = copy.dstArray = array;
  copy.srcPitch = copy.dstPitch = width * sizeof(float);
  copy.srcHeight = copy.dstHeight = height;
  copy.WidthInBytes = width * sizeof(float);
  copy.Height = height;
  copy.Depth = depth;
  return copy;
}

CUDA_RESOURCE_DESC resource_of(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

constexpr const char* kSample =
    ".visible .entry k(.param .u64 t, .param .u64 out)\n{\n"
    ".reg .f32 %f<8>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [t];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n"
    "cvt.rn.f32.u32 %f1, %r1;\nadd.rn.f32 %f1, %f1, 0f3F800000;\n"
    "tex.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1}];\n"
    "mul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd2, %rd2, %rd3;\nst.global.f32 [%rd2], %f2;\nret;\n}\n";

/// What three threads sample at 1, 2 and 3.
Floats samples(EmulatedContext& gpu, CUtexObject texture) {
  const CUmodule module = gpu.load(test::ptx_module(kSample));
  const CUfunction kernel = gpu.function(module, "k");
  CUdeviceptr out = gpu.allocate(12);
  void* arguments[] = {&texture, &out};
  REQUIRE(gpu.api.launch_kernel(kernel, 1, 1, 1, 3, 1, 1, 0, nullptr, arguments, nullptr) ==
          CUDA_SUCCESS);
  Floats values(3);
  const CUresult result = gpu.api.memcpy_to_host(values.data(), out, 12);
  INFO(gpu.log());
  CHECK(result == CUDA_SUCCESS);
  CHECK(gpu.api.mem_free(out) == CUDA_SUCCESS);
  return values;
}

}  // namespace

TEST_CASE("arrays: copies of boxes, rows and bytes") {
  EmulatedContext gpu;
  CUarray volume = make(gpu, array_of(4, 3, 2));
  Floats values = counting(24);
  CUDA_MEMCPY3D copy = box_of(volume, values.data(), true, 4, 3, 2);
  CHECK(gpu.api.memcpy_3d(&copy) == CUDA_SUCCESS);
  Floats part(4);
  copy = box_of(volume, part.data(), false, 2, 2, 1);
  copy.srcXInBytes = 8;
  copy.srcY = 1;
  copy.srcZ = 1;
  CHECK(gpu.api.memcpy_3d(&copy) == CUDA_SUCCESS);
  CHECK(part == Floats{18, 19, 22, 23});

  CUarray image = make(gpu, array_of(4, 3));
  CUDA_MEMCPY3D slice{};
  slice.srcMemoryType = slice.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  slice.srcArray = volume;
  slice.dstArray = image;
  slice.srcZ = 1;
  slice.WidthInBytes = 16;
  slice.Height = 3;
  slice.Depth = 1;
  CHECK(gpu.api.memcpy_3d_async(&slice, nullptr) == CUDA_SUCCESS);
  CUDA_MEMCPY2D row{};
  row.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  row.srcArray = image;
  row.srcY = 2;
  row.dstMemoryType = CU_MEMORYTYPE_HOST;
  row.dstHost = part.data();
  row.WidthInBytes = 16;
  row.Height = 1;
  CHECK(gpu.api.memcpy_2d(&row) == CUDA_SUCCESS);
  CHECK(part == Floats{20, 21, 22, 23});

  // Columns of linear memory, the second from a position beyond the pitch of 8.
  const CUdeviceptr columns = gpu.allocate(32);
  CUDA_MEMCPY2D column{};
  column.srcMemoryType = CU_MEMORYTYPE_HOST;
  column.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  column.dstDevice = columns;
  column.srcHost = values.data();
  column.srcPitch = 16;
  column.dstPitch = column.WidthInBytes = 8;
  column.Height = 2;
  CHECK(gpu.api.memcpy_2d(&column) == CUDA_SUCCESS);
  column.srcXInBytes = 8;
  column.dstXInBytes = 16;
  CHECK(gpu.api.memcpy_2d(&column) == CUDA_SUCCESS);
  Floats both(8);
  CHECK(gpu.api.memcpy_to_host(both.data(), columns, 32) == CUDA_SUCCESS);
  CHECK(both == Floats{0, 1, 4, 5, 2, 3, 6, 7});

  CUarray line = make(gpu, array_of(8, 0));
  CUarray other = make(gpu, array_of(8, 0));
  CUdeviceptr memory = gpu.allocate(32);
  Floats back(8);
  CHECK(gpu.api.memcpy_host_to_array(line, 0, values.data() + 8, 32) == CUDA_SUCCESS);
  CHECK(gpu.api.memcpy_array_to_array(other, 0, line, 16, 16) == CUDA_SUCCESS);
  CHECK(gpu.api.memcpy_host_to_array_async(other, 16, values.data(), 16, nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.memcpy_array_to_device(memory, other, 0, 32) == CUDA_SUCCESS);
  CHECK(gpu.api.memcpy_device_to_array(line, 0, memory, 32) == CUDA_SUCCESS);
  CHECK(gpu.api.memcpy_array_to_host(back.data(), line, 0, 32) == CUDA_SUCCESS);
  CHECK(back == Floats{12, 13, 14, 15, 0, 1, 2, 3});
  CHECK(gpu.api.memcpy_array_to_host_async(back.data(), line, 28, 4, nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.ctx_synchronize() == CUDA_SUCCESS);
  CHECK(back[0] == 3);
  CHECK(gpu.log().empty());
}

TEST_CASE("arrays: descriptors, ends, and what is refused") {
  EmulatedContext gpu;
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR plain{8, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  REQUIRE(gpu.api.array_create(&array, &plain) == CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR two{};
  CUDA_ARRAY3D_DESCRIPTOR three{};
  CHECK(gpu.api.array_get_descriptor(&two, array) == CUDA_SUCCESS);
  CHECK(gpu.api.array_3d_get_descriptor(&three, array) == CUDA_SUCCESS);
  CHECK((two.Width == 8 && two.Height == 4 && two.NumChannels == 4));
  CHECK((three.Depth == 0 && three.Format == CU_AD_FORMAT_UNSIGNED_INT8 && three.Flags == 0));
  const auto refused = [&](const CUDA_ARRAY3D_DESCRIPTOR& descriptor, CUresult expected) {
    CUarray none = nullptr;
    CHECK(gpu.api.array_3d_create(&none, &descriptor) == expected);
    return gpu.log();
  };
  CHECK_THAT(refused(array_of(4, 4, 6, kArrayCubemap), CUDA_ERROR_NOT_SUPPORTED),
             Contains("cuArray3DCreate: cubemaps are not emulated; use an array of 6 layers"));
  CHECK_THAT(refused(array_of(4, 4, 0, 0x40), CUDA_ERROR_NOT_SUPPORTED),
             Contains("of the flags 0x40 only layered (1), surface (2) and gather (8)"));
  CHECK_THAT(refused(array_of(4, 4, 0, 0, 3), CUDA_ERROR_INVALID_VALUE),
             Contains("format 0x20 with 3 channels is not emulated"));
  CHECK_THAT(refused(array_of(0, 4), CUDA_ERROR_INVALID_VALUE), Contains("the width is 0"));
  CHECK_THAT(refused(array_of(200000, 0), CUDA_ERROR_INVALID_VALUE),
             Contains("the width is 200000, the maximum 131072"));
  CHECK_THAT(refused(array_of(4, 0, 4), CUDA_ERROR_INVALID_VALUE), Contains("the height is 0"));
  CHECK_THAT(refused(array_of(4, 4, 0, kArrayLayered), CUDA_ERROR_INVALID_VALUE),
             Contains("number of layers, which is 0"));

  std::array<float, 32> host{};
  CUDA_MEMCPY3D copy = box_of(array, host.data(), true, 8, 5, 1);
  CHECK(gpu.api.memcpy_3d(&copy) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("a copy of 32 bytes x 5 x 1 from byte 0 of row 0 of slice 0 on is "
                                 "not inside of array 1 (2D, 8 x 4, 4 x u8)"));
  copy = box_of(array, host.data(), true, 2, 1, 1);
  copy.dstXInBytes = 2;
  CHECK(gpu.api.memcpy_3d(&copy) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("multiples of the 4 bytes of an element"));
  CHECK(gpu.api.memcpy_host_to_array(array, 0, host.data(), 32) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("needs a 1D array, but array 1 is 2D, 8 x 4, 4 x u8"));
  CHECK(gpu.api.array_destroy(array) == CUDA_SUCCESS);
  CHECK(gpu.api.array_destroy(array) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(gpu.api.memcpy_3d(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("textures: of an array and of linear memory, sampled by a kernel") {
  EmulatedContext gpu;
  CUarray line = make(gpu, array_of(4, 0));
  Floats values{0, 10, 20, 40};
  REQUIRE(gpu.api.memcpy_host_to_array(line, 0, values.data(), 16) == CUDA_SUCCESS);
  CUDA_RESOURCE_DESC resource = resource_of(line);
  CUDA_TEXTURE_DESC how{};
  how.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject texture = 0;
  REQUIRE(gpu.api.tex_object_create(&texture, &resource, &how, nullptr) == CUDA_SUCCESS);
  CHECK(samples(gpu, texture) == Floats{5, 15, 30});
  CUDA_RESOURCE_DESC same{};
  CUDA_TEXTURE_DESC same_way{};
  CHECK(gpu.api.tex_object_get_resource_desc(&same, texture) == CUDA_SUCCESS);
  CHECK(same.res.array.hArray == line);
  CHECK(gpu.api.tex_object_get_texture_desc(&same_way, texture) == CUDA_SUCCESS);
  CHECK(same_way.filterMode == CU_TR_FILTER_MODE_LINEAR);
  CHECK(gpu.api.tex_object_destroy(texture) == CUDA_SUCCESS);
  CHECK(gpu.api.tex_object_destroy(texture) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.api.tex_object_get_resource_desc(&same, texture) == CUDA_ERROR_INVALID_VALUE);

  const CUdeviceptr memory = gpu.allocate(16);
  REQUIRE(gpu.api.memcpy_to_device(memory, values.data(), 16) == CUDA_SUCCESS);
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {memory, CU_AD_FORMAT_FLOAT, 1, 12};
  REQUIRE(gpu.api.tex_object_create(&texture, &resource, &how, nullptr) == CUDA_SUCCESS);
  CHECK(samples(gpu, texture) == Floats{10, 20, 0});
  CHECK(gpu.log().empty());

  // The handle of an object that is gone is a fault, as an address of nothing.
  CHECK(gpu.api.tex_object_destroy(texture) == CUDA_SUCCESS);
  const CUmodule module = gpu.load(test::ptx_module(kSample));
  CUdeviceptr out = gpu.allocate(12);
  void* arguments[] = {&texture, &out};
  CHECK(gpu.api.launch_kernel(gpu.function(module, "k"), 1, 1, 1, 3, 1, 1, 0, nullptr, arguments,
                              nullptr) == CUDA_SUCCESS);
  CHECK(gpu.api.ctx_synchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_THAT(gpu.log(), Contains("thread uses texture object 2, which was destroyed"));
}

TEST_CASE("textures and surfaces: what is refused, and what to do") {
  EmulatedContext gpu;
  CUDA_RESOURCE_DESC resource = resource_of(make(gpu, array_of(4, 4)));
  CUDA_TEXTURE_DESC how{};
  unsigned long long object = 0;
  const auto refused = [&](CUresult expected, const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
    CHECK(gpu.api.tex_object_create(&object, &resource, &how, view) == expected);
    return gpu.log();
  };
  CHECK(gpu.api.surf_object_create(&object, &resource) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("cuSurfObjectCreate: array 1 was created without "
                                 "CUDA_ARRAY3D_SURFACE_LDST (cudaArraySurfaceLoadStore)"));
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_FLOAT_1X32;
  view.width = view.height = 4;
  CHECK(refused(CUDA_SUCCESS, &view).empty());
  view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
  CHECK_THAT(refused(CUDA_ERROR_NOT_SUPPORTED, &view),
             Contains("a resource view of another format, size or range of layers is not emulated; "
                      "pass null"));
  view = {};
  view.width = 3;
  CHECK_THAT(refused(CUDA_ERROR_NOT_SUPPORTED, &view), Contains("a resource view of another"));
  how.flags = kTextureSrgb;
  CHECK_THAT(refused(CUDA_ERROR_NOT_SUPPORTED),
             Contains("conversion from sRGB is not emulated; convert in the kernel"));
  how = {};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  CHECK_THAT(refused(CUDA_ERROR_NOT_SUPPORTED), Contains("mipmapped arrays are not emulated"));
  const CUdeviceptr memory = gpu.allocate(4096);
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {memory, CU_AD_FORMAT_UNSIGNED_INT8, 1, 60, 4, 60};
  CHECK_THAT(refused(CUDA_ERROR_INVALID_VALUE), Contains("a pitch of 60 bytes for rows of 60; it "
                                                         "must be a multiple of 32"));
  resource.res.pitch2D = {memory + 32, CU_AD_FORMAT_UNSIGNED_INT8, 1, 60, 4, 64};
  CHECK_THAT(refused(CUDA_ERROR_INVALID_VALUE), Contains("is not a multiple of 512"));
  resource.res.pitch2D = {memory, CU_AD_FORMAT_UNSIGNED_INT8, 1, 60, 80, 64};
  CHECK_THAT(refused(CUDA_ERROR_INVALID_VALUE), Contains("past the end of the allocation"));
  resource.res.pitch2D = {memory, CU_AD_FORMAT_UNSIGNED_INT8, 1, 60, 4, 64};
  how.filterMode = CU_TR_FILTER_MODE_LINEAR;
  how.flags = kTextureAsInteger;
  CHECK_THAT(refused(CUDA_ERROR_INVALID_VALUE),
             Contains("the linear filter is for elements that are read as floats"));
  how.flags = 0;
  CHECK(refused(CUDA_SUCCESS).empty());
  CHECK(gpu.api.surf_object_create(&object, &resource) == CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(gpu.log(), Contains("a surface object is of an array"));
  CHECK(gpu.api.surf_object_destroy(object) == CUDA_ERROR_INVALID_VALUE);
  resource = resource_of(make(gpu, array_of(4, 4, 0, kArraySurface)));
  CHECK(gpu.api.surf_object_create(&object, &resource) == CUDA_SUCCESS);
  CUDA_RESOURCE_DESC same{};
  CHECK(gpu.api.surf_object_get_resource_desc(&same, object) == CUDA_SUCCESS);
  CHECK(same.res.array.hArray == resource.res.array.hArray);
  CHECK(gpu.api.tex_object_destroy(object) == CUDA_ERROR_INVALID_VALUE);
  CHECK(gpu.api.surf_object_destroy(object) == CUDA_SUCCESS);
}

TEST_CASE("a graph copies to an array, and does not give the parameters of that copy") {
  EmulatedContext gpu;
  const CUarray array = make(gpu, array_of(4, 2));
  Floats host = counting(8);
  const CUDA_MEMCPY3D copy = box_of(array, host.data(), true, 4, 2, 1);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  REQUIRE(gpu.api.graph_create(&graph, 0) == CUDA_SUCCESS);
  REQUIRE(gpu.api.graph_add_memcpy_node(&node, graph, nullptr, 0, &copy, gpu.context) ==
          CUDA_SUCCESS);
  CUDA_MEMCPY3D found{};
  CHECK(gpu.api.graph_memcpy_node_get_params(node, &found) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(gpu.log(), Contains("the node copies from or to a CUDA array"));
  CUgraphExec exec = nullptr;
  REQUIRE(gpu.api.graph_instantiate_with_flags(&exec, graph, 0) == CUDA_SUCCESS);
  REQUIRE(gpu.api.graph_launch(exec, nullptr) == CUDA_SUCCESS);
  Floats back(8);
  const CUDA_MEMCPY3D read = box_of(array, back.data(), false, 4, 2, 1);
  CHECK(gpu.api.memcpy_3d(&read) == CUDA_SUCCESS);
  CHECK(back == host);
}
