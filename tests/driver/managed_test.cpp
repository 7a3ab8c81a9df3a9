// tests/driver/managed_test.cpp - advice about managed memory of the emulated driver
#include <catch2/catch.hpp>
#include <vector>

#include "driver_fixture.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kPages = 4;
constexpr const char* kNoManagedMemory =
    "the device's addresses are taken (a sanitizer): there is no managed memory";

/// Pages of managed memory; `address` is 0 where the addresses are taken (sanitizers).
struct ManagedFixture : DriverFixture {
  CUdeviceptr address = 0;

  explicit ManagedFixture(std::uint64_t bytes = kPages * kPageBytes) {
    if (driver.mem_alloc_managed(&address, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) {
      address = 0;
    }
  }

  int number(CUmem_range_attribute attribute, std::uint64_t first, std::uint64_t bytes) {
    int value = -99;
    PTXGEN_OK(
        driver.mem_range_get_attribute(&value, sizeof value, attribute, address + first, bytes));
    return value;
  }
  int number(CUmem_range_attribute attribute) { return number(attribute, 0, kPages * kPageBytes); }
  void advise(CUmem_advise advice, CUmemLocation location, std::uint64_t first = 0,
              std::uint64_t bytes = kPages * kPageBytes) {
    PTXGEN_OK(driver.mem_advise(address + first, bytes, advice, location));
  }
};

constexpr CUmemLocation kDevice{CU_MEM_LOCATION_TYPE_DEVICE, 0};
constexpr CUmemLocation kHost{CU_MEM_LOCATION_TYPE_HOST, 5};

}  // namespace

TEST_CASE("advice is of pages, and a range has what all its pages have") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  constexpr auto kReads = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
  CHECK(fixture.number(kReads) == 0);
  // One byte of the second page.
  fixture.advise(CU_MEM_ADVISE_SET_READ_MOSTLY, {}, kPageBytes + 7, 1);
  const std::uint64_t page = (fixture.address + kPageBytes + 7) / kPageBytes * kPageBytes;
  const std::uint64_t first = page - fixture.address;
  CHECK(fixture.number(kReads, first, kPageBytes) == 1);
  CHECK(fixture.number(kReads, first + 100, 8) == 1);
  CHECK(fixture.number(kReads, first - 1, 1) == 0);
  CHECK(fixture.number(kReads, first - 1, 2) == 0);
  CHECK(fixture.number(kReads, first, kPageBytes + 1) == 0);
  fixture.advise(CU_MEM_ADVISE_SET_READ_MOSTLY, {});
  CHECK(fixture.number(kReads) == 1);
  fixture.advise(CU_MEM_ADVISE_UNSET_READ_MOSTLY, {}, first, 1);
  CHECK(fixture.number(kReads) == 0);
}

TEST_CASE("the preferred location is reported as ordinal, type and number") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  constexpr auto kOrdinal = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
  constexpr auto kType = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE;
  constexpr auto kId = CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID;
  CHECK(fixture.number(kOrdinal) == kDeviceInvalid);
  CHECK(fixture.number(kType) == CU_MEM_LOCATION_TYPE_INVALID);
  fixture.advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDevice);
  CHECK(fixture.number(kOrdinal) == 0);
  CHECK(fixture.number(kType) == CU_MEM_LOCATION_TYPE_DEVICE);
  CHECK(fixture.number(kId) == 0);
  fixture.advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kHost);
  CHECK(fixture.number(kOrdinal) == kDeviceCpu);
  CHECK(fixture.number(kType) == CU_MEM_LOCATION_TYPE_HOST);
  fixture.advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 9},
                 0, 1);
  CHECK(fixture.number(kType, 0, 1) == CU_MEM_LOCATION_TYPE_HOST_NUMA);
  CHECK(fixture.number(kId, 0, 1) == 0);
  CHECK(fixture.number(kType) == CU_MEM_LOCATION_TYPE_INVALID);  // they differ
  fixture.advise(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, 99});
  CHECK(fixture.number(kOrdinal) == kDeviceInvalid);
}

TEST_CASE("the devices that access a range are listed, then CU_DEVICE_INVALID") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  const auto devices = [&](std::size_t length) {
    std::vector<CUdevice> found(length, 77);
    PTXGEN_OK(fixture.driver.mem_range_get_attribute(found.data(), length * sizeof(CUdevice),
                                                     CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                                     fixture.address, kPages * kPageBytes));
    return found;
  };
  CHECK(devices(1) == std::vector<CUdevice>{kDeviceInvalid});
  fixture.advise(CU_MEM_ADVISE_SET_ACCESSED_BY, kDevice);
  fixture.advise(CU_MEM_ADVISE_SET_ACCESSED_BY, kHost);
  CHECK(devices(3) == std::vector<CUdevice>{0, kDeviceCpu, kDeviceInvalid});
  CHECK(devices(1).size() == 1);
  fixture.advise(CU_MEM_ADVISE_UNSET_ACCESSED_BY, kHost, 0, 1);
  CHECK(devices(2) == std::vector<CUdevice>{0, kDeviceInvalid});
  PTXGEN_CHECK_RESULT(fixture.driver.mem_advise(fixture.address, 1, CU_MEM_ADVISE_SET_ACCESSED_BY,
                                                {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}),
                      CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the last prefetch is remembered, also of batches") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  const Table& driver = fixture.driver;
  constexpr auto kOrdinal = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
  constexpr auto kType = CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE;
  CUstream stream = nullptr;
  PTXGEN_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(fixture.number(kOrdinal) == kDeviceInvalid);
  PTXGEN_OK(driver.mem_prefetch_async(fixture.address, kPages * kPageBytes, kDevice, 0, nullptr));
  CHECK(fixture.number(kOrdinal) == 0);
  CHECK(fixture.number(kType) == CU_MEM_LOCATION_TYPE_DEVICE);
  CUdeviceptr addresses[2] = {fixture.address, fixture.address + 3 * kPageBytes};
  std::size_t sizes[2] = {1, 1};
  CUmemLocation places[2] = {kHost, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
  std::size_t firsts[2] = {0, 1};
  PTXGEN_OK(driver.mem_prefetch_batch_async(addresses, sizes, 2, places, firsts, 2, 0, stream));
  CHECK(fixture.number(kType, 0, 1) == CU_MEM_LOCATION_TYPE_HOST);
  CHECK(fixture.number(kType, 3 * kPageBytes, 1) == CU_MEM_LOCATION_TYPE_HOST_NUMA);
  CHECK(fixture.number(kOrdinal) == kDeviceInvalid);
  PTXGEN_OK(driver.mem_discard_batch_async(addresses, sizes, 2, 0, stream));
  CUmemLocation device = kDevice;
  PTXGEN_OK(driver.mem_discard_and_prefetch_batch_async(addresses, sizes, 2, &device, firsts, 1, 0,
                                                        stream));
  CHECK(fixture.number(kType, 0, 1) == CU_MEM_LOCATION_TYPE_DEVICE);
  PTXGEN_OK(driver.stream_destroy(stream));
}

TEST_CASE("batches of ranges are checked before the first of them") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  const Table& driver = fixture.driver;
  CUstream stream = nullptr;
  PTXGEN_OK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr plain = fixture.allocate(64);
  CUdeviceptr addresses[2] = {fixture.address, plain};
  std::size_t sizes[2] = {1, 1};
  CUmemLocation place = kDevice;
  std::size_t first = 0;
  PTXGEN_CHECK_RESULT(
      driver.mem_prefetch_batch_async(addresses, sizes, 2, &place, &first, 1, 0, stream),
      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemPrefetchBatchAsync: the memory at") &&
                              Catch::Contains("is not managed"));
  CHECK(fixture.number(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 1) == kDeviceInvalid);
  PTXGEN_CHECK_RESULT(driver.mem_discard_batch_async(addresses, sizes, 1, 0, nullptr),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemDiscardBatchAsync: the stream must not be the "
                                          "legacy default stream"));
  addresses[1] = fixture.address;
  std::size_t same[2] = {0, 0};
  CUmemLocation places[2] = {kHost, kHost};
  PTXGEN_CHECK_RESULT(
      driver.mem_prefetch_batch_async(addresses, sizes, 2, places, same, 2, 0, stream),
      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("location 0: its first range is 0, which must be less"));
  PTXGEN_OK(driver.mem_free(plain));
  PTXGEN_OK(driver.stream_destroy(stream));
}

TEST_CASE("attributes of ranges need managed memory and data of their size") {
  ManagedFixture fixture;
  const Table& driver = fixture.driver;
  int value = 0;
  const CUdeviceptr plain = fixture.allocate(64);
  PTXGEN_CHECK_RESULT(
      driver.mem_range_get_attribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, plain, 64),
      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemRangeGetAttribute: the memory at"));
  PTXGEN_OK(driver.mem_free(plain));
  if (fixture.address == 0) return skip(kNoManagedMemory);
  std::uint64_t wide = 0;
  PTXGEN_CHECK_RESULT(driver.mem_range_get_attribute(&wide, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                                     fixture.address, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_range_get_attribute(&wide, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                                                     fixture.address, 1),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_range_get_attribute(
                          &value, 4, static_cast<CUmem_range_attribute>(99), fixture.address, 1),
                      CUDA_ERROR_INVALID_VALUE);
  int reads = -1;
  int preferred = 0;
  void* data[2] = {&reads, &preferred};
  std::size_t sizes[2] = {4, 4};
  CUmem_range_attribute attributes[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                         CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  PTXGEN_OK(
      driver.mem_range_get_attributes(data, sizes, attributes, 2, fixture.address, kPageBytes));
  CHECK(reads == 0);
  CHECK(preferred == kDeviceInvalid);
}

TEST_CASE("an allocation keeps that its operations are synchronous") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr address = fixture.allocate(64);
  unsigned on = 1;
  int found = 0;
  PTXGEN_OK(driver.pointer_set_attribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address + 8));
  PTXGEN_OK(driver.pointer_get_attribute(&found, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address));
  CHECK(found == 1);
  PTXGEN_CHECK_RESULT(driver.pointer_set_attribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, address),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.pointer_set_attribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 16),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free(address));
}

TEST_CASE("memory of a managed pool prefers the location of its pool") {
  ManagedFixture fixture;
  if (fixture.address == 0) return skip(kNoManagedMemory);
  const Table& driver = fixture.driver;
  CUmemLocation location = kDevice;
  CUmemoryPool pool = nullptr;
  PTXGEN_OK(driver.mem_get_mem_pool(&pool, &location, CU_MEM_ALLOCATION_TYPE_MANAGED));
  PTXGEN_OK(driver.mem_free(fixture.address));
  PTXGEN_OK(driver.mem_alloc_from_pool_async(&fixture.address, kPageBytes, pool, nullptr));
  CHECK(fixture.number(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 1) ==
        CU_MEM_LOCATION_TYPE_DEVICE);
  PTXGEN_OK(driver.mem_free_async(fixture.address, nullptr));
}
