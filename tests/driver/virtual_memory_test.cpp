// tests/driver/virtual_memory_test.cpp - reserved addresses, mapped memory; batches of copies
#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

constexpr std::size_t kMappedPage = std::size_t{2} << 20;

CUmemAllocationProp memory_properties() {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return wanted;
}

// store(u64 at): *at = 5, by one thread
constexpr char kStoreFive[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 at)
{
  .reg .u64 %rd<2>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [at];
  mov.u32 %r1, 5;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

struct MappedFixture : DriverFixture {
  CUdeviceptr reserve(std::size_t bytes) {
    CUdeviceptr address = 0;
    PTXGEN_OK(driver.mem_address_reserve(&address, bytes, 0, 0, 0));
    CHECK(address % kMappedPage == 0);
    return address;
  }
  CUmemGenericAllocationHandle create(std::size_t bytes) {
    const CUmemAllocationProp wanted = memory_properties();
    CUmemGenericAllocationHandle handle = 0;
    PTXGEN_OK(driver.mem_create(&handle, bytes, &wanted, 0));
    return handle;
  }
  CUresult allow(CUdeviceptr address, std::size_t bytes,
                 CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};
    return driver.mem_set_access(address, bytes, &access, 1);
  }
  /// Maps and allows.
  void map(CUdeviceptr address, std::size_t bytes, CUmemGenericAllocationHandle handle) {
    PTXGEN_OK(driver.mem_map(address, bytes, 0, handle, 0));
    PTXGEN_OK(allow(address, bytes));
  }
  std::size_t used() {
    std::size_t free = 0;
    std::size_t total = 0;
    PTXGEN_OK(driver.mem_get_info(&free, &total));
    return total - free;
  }
  /// The result of a kernel that stores there.
  CUresult store(CUdeviceptr address) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    PTXGEN_OK(driver.module_load_data(&module, kStoreFive));
    PTXGEN_OK(driver.module_get_function(&function, module, "store"));
    std::array<void*, 1> arguments{&address};
    PTXGEN_OK(
        driver.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr));
    return driver.ctx_synchronize();
  }
};

}  // namespace

TEST_CASE("a reservation grows by mapped memory, which is one range for copies") {
  MappedFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t granularity = 0;
  const CUmemAllocationProp wanted = memory_properties();
  PTXGEN_OK(driver.mem_get_allocation_granularity(&granularity, &wanted,
                                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  CHECK(granularity == kMappedPage);
  const std::size_t before = fixture.used();
  const CUdeviceptr start = fixture.reserve(8 * kMappedPage);
  CHECK(fixture.used() == before);
  std::array<CUmemGenericAllocationHandle, 2> handles{fixture.create(kMappedPage),
                                                      fixture.create(2 * kMappedPage)};
  CHECK(fixture.used() == before + 3 * kMappedPage);
  fixture.map(start, kMappedPage, handles[0]);
  PTXGEN_OK(driver.memset_d8(start, 1, kMappedPage));
  fixture.map(start + kMappedPage, 2 * kMappedPage, handles[1]);
  // The mappings keep the memory.
  for (const CUmemGenericAllocationHandle handle : handles) PTXGEN_OK(driver.mem_release(handle));
  PTXGEN_CHECK_RESULT(driver.mem_release(handles[0]), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.memset_d8(start + kMappedPage - 4, 2, 8));
  CHECK(fixture.bytes_of(start + kMappedPage - 6, 4) == std::vector<unsigned char>{1, 1, 2, 2});
  CHECK(fixture.bytes_of(start + kMappedPage + 2, 2) == std::vector<unsigned char>{2, 2});
  PTXGEN_CHECK_RESULT(driver.memset_d8(start, 1, 3 * kMappedPage + 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("go 1 byte past the end of the allocation"));
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  PTXGEN_OK(driver.mem_get_address_range(&base, &bytes, start + 2 * kMappedPage));
  CHECK(base == start + kMappedPage);
  CHECK(bytes == 2 * kMappedPage);
  PTXGEN_CHECK_RESULT(fixture.store(start + 3 * kMappedPage - 4), CUDA_SUCCESS);

  PTXGEN_CHECK_RESULT(driver.mem_address_free(start, 8 * kMappedPage), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemAddressFree: memory is mapped at 0x"));
  PTXGEN_OK(driver.mem_unmap(start, 3 * kMappedPage));
  CHECK(fixture.used() == before);
  PTXGEN_CHECK_RESULT(driver.mem_address_free(start, kMappedPage), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_address_free(start, 8 * kMappedPage));
}

TEST_CASE("memory keeps its bytes when it moves, and can have two addresses") {
  MappedFixture fixture;
  const Table& driver = fixture.driver;
  const CUmemGenericAllocationHandle handle = fixture.create(kMappedPage);
  const CUdeviceptr first = fixture.reserve(kMappedPage);
  const CUdeviceptr second = fixture.reserve(2 * kMappedPage);
  fixture.map(first, kMappedPage, handle);
  PTXGEN_OK(driver.memset_d32(first, 0x01020304, kMappedPage / 4));
  PTXGEN_OK(driver.mem_unmap(first, kMappedPage));
  fixture.map(second + kMappedPage, kMappedPage, handle);
  CHECK(fixture.bytes_of(second + 2 * kMappedPage - 2, 2) == std::vector<unsigned char>{2, 1});
  fixture.map(second, kMappedPage, handle);
  PTXGEN_OK(driver.memset_d8(second + 17, 9, 1));
  CHECK(fixture.bytes_of(second + kMappedPage + 17, 1) == std::vector<unsigned char>{9});
  // What was written is known at both addresses: no finding.
  PTXGEN_CHECK_RESULT(fixture.store(second + 16), CUDA_SUCCESS);
  CHECK(fixture.bytes_of(second + kMappedPage + 16, 2) == std::vector<unsigned char>{5, 0});
  CHECK(fixture.log.empty());
  CUmemGenericAllocationHandle found = 0;
  PTXGEN_OK(driver.mem_release(handle));
  PTXGEN_OK(driver.mem_retain_allocation_handle(&found, reinterpret_cast<void*>(second + 5)));
  CHECK(found == handle);
  CUmemAllocationProp its_properties{};
  PTXGEN_OK(driver.mem_get_allocation_properties_from_handle(&its_properties, found));
  CHECK(its_properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  PTXGEN_OK(driver.mem_release(found));
  PTXGEN_CHECK_RESULT(driver.mem_retain_allocation_handle(&found, reinterpret_cast<void*>(first)),
                      CUDA_ERROR_INVALID_VALUE);
  // New memory at old addresses is not initialised.
  PTXGEN_OK(driver.mem_unmap(second, kMappedPage));
  const CUmemGenericAllocationHandle other = fixture.create(kMappedPage);
  fixture.map(second, kMappedPage, other);
  CHECK(fixture.bytes_of(second + 17, 1) == std::vector<unsigned char>{0});
}

TEST_CASE("addresses without memory or access are faults that say what is missing") {
  SECTION("nothing is mapped") {
    MappedFixture fixture;
    const CUdeviceptr start = fixture.reserve(2 * kMappedPage);
    PTXGEN_CHECK_RESULT(fixture.driver.memset_d8(start, 1, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_THAT(fixture.log, Catch::Contains("are in a reservation, where nothing is mapped: map"));
    PTXGEN_CHECK_RESULT(fixture.store(start + kMappedPage), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_THAT(fixture.log, Catch::Contains("where nothing is mapped") &&
                                Catch::Contains("map memory there (cuMemMap)"));
  }
  SECTION("mapped without access") {
    MappedFixture fixture;
    const CUdeviceptr start = fixture.reserve(kMappedPage);
    PTXGEN_OK(fixture.driver.mem_map(start, kMappedPage, 0, fixture.create(kMappedPage), 0));
    PTXGEN_CHECK_RESULT(fixture.store(start), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_THAT(fixture.log, Catch::Contains("where memory is mapped without access") &&
                                Catch::Contains("cuMemSetAccess"));
  }
  SECTION("mapped for reads") {
    MappedFixture fixture;
    const Table& driver = fixture.driver;
    const CUdeviceptr start = fixture.reserve(kMappedPage);
    fixture.map(start, kMappedPage, fixture.create(kMappedPage));
    PTXGEN_OK(driver.memset_d8(start, 3, 8));
    PTXGEN_OK(fixture.allow(start, kMappedPage, CU_MEM_ACCESS_FLAGS_PROT_READ));
    const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags = 99;
    PTXGEN_OK(driver.mem_get_access(&flags, &here, start + 5));
    CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK(fixture.bytes_of(start, 1)[0] == 3);
    PTXGEN_CHECK_RESULT(fixture.store(start), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("virtual memory that cannot be had is refused with the reason") {
  MappedFixture fixture;
  const Table& driver = fixture.driver;
  CUmemAllocationProp wanted = memory_properties();
  CUmemGenericAllocationHandle handle = 0;
  PTXGEN_CHECK_RESULT(driver.mem_create(&handle, kMappedPage + 4096, &wanted, 0),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemCreate: 2101248 bytes") &&
                              Catch::Contains("multiples of 2097152"));
  wanted.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(1);
  PTXGEN_CHECK_RESULT(driver.mem_create(&handle, kMappedPage, &wanted, 0),
                      CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("does not share memory with other processes"));
  wanted = memory_properties();
  wanted.location.type = CU_MEM_LOCATION_TYPE_HOST;
  PTXGEN_CHECK_RESULT(driver.mem_create(&handle, kMappedPage, &wanted, 0),
                      CUDA_ERROR_NOT_SUPPORTED);
  wanted = memory_properties();
  wanted.location.id = 99;
  PTXGEN_CHECK_RESULT(driver.mem_create(&handle, kMappedPage, &wanted, 0),
                      CUDA_ERROR_INVALID_DEVICE);
  wanted = memory_properties();
  PTXGEN_CHECK_RESULT(driver.mem_create(&handle, kMappedPage << 30, &wanted, 0),
                      CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 0;
  PTXGEN_CHECK_RESULT(driver.mem_address_reserve(&address, kMappedPage, 3, 0, 0),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_address_reserve(&address, std::size_t{1} << 60, 0, 0, 0),
                      CUDA_ERROR_OUT_OF_MEMORY);

  handle = fixture.create(kMappedPage);
  const CUdeviceptr start = fixture.reserve(4 * kMappedPage);
  fixture.map(start, kMappedPage, handle);
  const auto refused = [&](CUresult result, const char* text) {
    PTXGEN_CHECK_RESULT(result, CUDA_ERROR_INVALID_VALUE);
    CHECK_THAT(fixture.log, Catch::Contains(text));
    fixture.log.clear();
  };
  refused(driver.mem_map(start, kMappedPage, 0, handle, 0), "cuMemMap: memory is mapped already");
  refused(driver.mem_map(start + kMappedPage, 2 * kMappedPage, 0, handle, 0),
          "of a handle of 2097152 bytes");
  refused(driver.mem_map(start + kMappedPage, kMappedPage, kMappedPage, handle, 0),
          "the offset must be 0");
  refused(driver.mem_map(start + 4 * kMappedPage, kMappedPage, 0, handle, 0),
          "not within a reservation");
  refused(driver.mem_map(start + kMappedPage, kMappedPage, 0, handle + 1, 0), "no memory handle");
  refused(driver.mem_map(start + 8, kMappedPage, 0, handle, 0),
          "sizes and addresses are multiples");
  refused(driver.mem_unmap(start, 2 * kMappedPage), "cuMemUnmap: 4194304 bytes");
  refused(fixture.allow(start + kMappedPage, kMappedPage), "are not exactly mapped");
  CUmemAccessDesc host{{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  PTXGEN_CHECK_RESULT(driver.mem_set_access(start, kMappedPage, &host, 1),
                      CUDA_ERROR_INVALID_DEVICE);
  unsigned long long flags = 0;
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  PTXGEN_CHECK_RESULT(driver.mem_get_access(&flags, &here, start + kMappedPage),
                      CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a batch copies all of its copies, or none that is wrong") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUstream const stream = fixture.make_stream();
  std::vector<unsigned char> host(256);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(0));
  const CUdeviceptr a = fixture.allocate(256);
  const CUdeviceptr b = fixture.allocate(256);
  PTXGEN_OK(driver.memset_d8(a, 0xaa, 256));
  std::vector<unsigned char> back(4, 0);
  const auto address = [](auto& bytes) { return reinterpret_cast<CUdeviceptr>(bytes.data()); };
  std::array<CUdeviceptr, 3> to{b, b + 100, address(back)};
  std::array<CUdeviceptr, 3> from{address(host), a, a + 3};
  std::array<std::size_t, 3> sizes{100, 50, 4};
  std::array<CUmemcpyAttributes, 2> attributes{};
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  std::array<std::size_t, 2> first{0, 1};
  const auto batch = [&](CUstream in) {
    return driver.memcpy_batch_async(to.data(), from.data(), sizes.data(), 3, attributes.data(),
                                     first.data(), 2, in);
  };
  PTXGEN_OK(batch(stream));
  std::fill(host.begin(), host.end(), static_cast<unsigned char>(0));
  PTXGEN_OK(driver.stream_synchronize(stream));
  const std::vector<unsigned char> found = fixture.bytes_of(b, 150);
  CHECK(found[99] == 99);
  CHECK(found[100] == 0xaa);
  CHECK(back[3] == 0xaa);
  CHECK(fixture.log.empty());
  PTXGEN_CHECK_RESULT(batch(nullptr), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("must not be the legacy default stream"));
  first[1] = 0;
  PTXGEN_CHECK_RESULT(batch(stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemcpyBatchAsync: attributes 1: "));
  first[1] = 1;
  sizes[1] = 257;
  PTXGEN_OK(driver.memset_d8(b, 0, 256));
  PTXGEN_CHECK_RESULT(batch(stream), CUDA_ERROR_INVALID_VALUE);
  CHECK(fixture.bytes_of(b, 1)[0] == 0);
  PTXGEN_OK(driver.stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  sizes[1] = 50;
  PTXGEN_CHECK_RESULT(batch(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_CASE("a batch of boxes") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUstream const stream = fixture.make_stream();
  std::vector<unsigned char> host(6 * 4 * 2);
  std::iota(host.begin(), host.end(), static_cast<unsigned char>(0));
  const CUdeviceptr device = fixture.allocate(256);
  PTXGEN_OK(driver.memset_d8(device, 0xff, 256));
  CUDA_MEMCPY3D_BATCH_OP copy{};
  copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  copy.src.op.ptr = {reinterpret_cast<CUdeviceptr>(host.data()), 6, 4, {}};
  copy.dst.op.ptr = {device, 0, 0, {}};
  copy.extent = {3, 2, 2};
  copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  PTXGEN_OK(driver.memcpy_3d_batch_async(1, &copy, 0, stream));
  PTXGEN_OK(driver.stream_synchronize(stream));
  CHECK(fixture.bytes_of(device, 13) ==
        std::vector<unsigned char>{0, 1, 2, 6, 7, 8, 24, 25, 26, 30, 31, 32, 0xff});
  copy.src.op.ptr.rowLength = 2;
  PTXGEN_CHECK_RESULT(driver.memcpy_3d_batch_async(1, &copy, 0, stream), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("copy 0: rowLength and layerHeight are 0 or at least"));
  copy.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  PTXGEN_CHECK_RESULT(driver.memcpy_3d_batch_async(1, &copy, 0, stream), CUDA_ERROR_NOT_SUPPORTED);
}
