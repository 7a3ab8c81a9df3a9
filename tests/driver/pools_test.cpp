// tests/driver/pools_test.cpp - memory pools, unified addresses, alignment of the emulated driver
#include <catch2/catch.hpp>
#include <cstring>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

namespace {

std::uint64_t count(const Table& driver, CUmemoryPool pool, CUmemPool_attribute attribute) {
  std::uint64_t value = ~std::uint64_t{0};
  PTXGEN_OK(driver.mem_pool_get_attribute(pool, attribute, &value));
  return value;
}

CUmemPoolProps properties() {
  CUmemPoolProps wanted{};
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return wanted;
}

/// Sanitizers keep the range of device addresses to themselves.
constexpr bool unified_is_possible() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

}  // namespace

TEST_CASE("the default pool counts stream-ordered memory") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUmemoryPool pool = nullptr;
  CUmemoryPool current = nullptr;
  PTXGEN_OK(driver.device_get_default_mem_pool(&pool, 0));
  PTXGEN_OK(driver.device_get_mem_pool(&current, 0));
  CHECK(pool == current);
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  PTXGEN_OK(driver.mem_get_mem_pool(&current, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  CHECK(pool == current);
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  // The pool is the process's: an earlier test may have used more.
  std::uint64_t zero = 0;
  PTXGEN_OK(driver.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  PTXGEN_OK(driver.mem_alloc_async(&first, 1000, nullptr));
  PTXGEN_OK(driver.mem_alloc_from_pool_async(&second, 500, pool, nullptr));
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1500);
  CUmemoryPool its_pool = nullptr;
  PTXGEN_OK(driver.pointer_get_attribute(&its_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, first));
  CHECK(its_pool == pool);
  PTXGEN_OK(driver.mem_free_async(first, nullptr));
  PTXGEN_OK(driver.mem_free(second));
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1500);
  PTXGEN_OK(driver.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  std::uint64_t threshold = 1 << 20;
  PTXGEN_OK(driver.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == threshold);
  PTXGEN_CHECK_RESULT(driver.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
                      CUDA_ERROR_INVALID_VALUE);
  threshold = 0;
  PTXGEN_OK(driver.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  PTXGEN_OK(driver.mem_pool_trim_to(pool, 0));
  PTXGEN_CHECK_RESULT(driver.mem_pool_destroy(pool), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.device_get_default_mem_pool(&pool, 99), CUDA_ERROR_INVALID_DEVICE);
  CHECK(fixture.log.empty());
}

TEST_CASE("a pool of the caller has a maximum size and outlives its handle") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUmemPoolProps wanted = properties();
  wanted.maxSize = 4096;
  CUmemoryPool pool = nullptr;
  PTXGEN_OK(driver.mem_pool_create(&pool, &wanted));
  CUdeviceptr address = 0;
  PTXGEN_CHECK_RESULT(driver.mem_alloc_from_pool_async(&address, 4097, pool, nullptr),
                      CUDA_ERROR_OUT_OF_MEMORY);
  PTXGEN_OK(driver.device_set_mem_pool(0, pool));
  PTXGEN_OK(driver.mem_alloc_async(&address, 4096, nullptr));
  CHECK(count(driver, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 4096);
  PTXGEN_OK(driver.mem_pool_destroy(pool));
  PTXGEN_CHECK_RESULT(driver.mem_pool_trim_to(pool, 0), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.memset_d8(address, 1, 4096));
  PTXGEN_OK(driver.mem_free(address));
  CUmemoryPool original = nullptr;
  CUmemoryPool current = nullptr;
  PTXGEN_OK(driver.device_get_default_mem_pool(&original, 0));
  PTXGEN_OK(driver.device_get_mem_pool(&current, 0));
  CHECK(current == original);
}

TEST_CASE("pools that cannot be had are refused with the reason") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps wanted = properties();
  wanted.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
  PTXGEN_CHECK_RESULT(driver.mem_pool_create(&pool, &wanted), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemPoolCreate: NUMA node 1; the emulated host has "
                                          "node 0 only"));
  wanted.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  PTXGEN_CHECK_RESULT(driver.mem_pool_create(&pool, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.location = {CU_MEM_LOCATION_TYPE_NONE, 0};
  PTXGEN_CHECK_RESULT(driver.mem_pool_create(&pool, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted = properties();
  wanted.handleTypes = static_cast<CUmemAllocationHandleType>(1);
  PTXGEN_CHECK_RESULT(driver.mem_pool_create(&pool, &wanted), CUDA_ERROR_NOT_SUPPORTED);
  CHECK_THAT(fixture.log, Catch::Contains("handleTypes must be CU_MEM_HANDLE_TYPE_NONE"));
  wanted = properties();
  wanted.location.id = 99;
  PTXGEN_CHECK_RESULT(driver.mem_pool_create(&pool, &wanted), CUDA_ERROR_INVALID_DEVICE);
  wanted = properties();
  PTXGEN_OK(driver.mem_pool_create(&pool, &wanted));
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  PTXGEN_OK(driver.mem_pool_get_access(&flags, pool, &wanted.location));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  PTXGEN_OK(driver.mem_pool_set_access(pool, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  PTXGEN_CHECK_RESULT(driver.mem_pool_set_access(pool, &access, 1), CUDA_ERROR_INVALID_VALUE);
  // A client that closes a pool tries it; that is nothing to tell of.
  CHECK_FALSE(fixture.log.find("cuMemPoolSetAccess") != std::string::npos);
  PTXGEN_OK(driver.mem_pool_destroy(pool));
}

TEST_CASE("each location and allocation type has a default and a current pool") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  for (const CUmemAllocationType type :
       {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED}) {
    for (const CUmemLocationType place :
         {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
          CU_MEM_LOCATION_TYPE_NONE}) {
      CAPTURE(type, place);
      CUmemLocation location{place, 0};
      CUmemoryPool original = nullptr;
      CUmemoryPool current = nullptr;
      if (type == CU_MEM_ALLOCATION_TYPE_PINNED && place == CU_MEM_LOCATION_TYPE_NONE) {
        PTXGEN_CHECK_RESULT(driver.mem_get_default_mem_pool(&original, &location, type),
                            CUDA_ERROR_INVALID_VALUE);
        continue;
      }
      PTXGEN_OK(driver.mem_get_default_mem_pool(&original, &location, type));
      PTXGEN_OK(driver.mem_get_mem_pool(&current, &location, type));
      CHECK(current == original);
      CUmemPoolProps wanted = properties();
      wanted.allocType = type;
      wanted.location = location;
      CUmemoryPool own = nullptr;
      PTXGEN_OK(driver.mem_pool_create(&own, &wanted));
      PTXGEN_OK(driver.mem_set_mem_pool(&location, type, own));
      PTXGEN_OK(driver.mem_get_mem_pool(&current, &location, type));
      CHECK(current == own);
      // Of another location or type.
      CUmemLocation other{place == CU_MEM_LOCATION_TYPE_HOST ? CU_MEM_LOCATION_TYPE_DEVICE
                                                             : CU_MEM_LOCATION_TYPE_HOST,
                          0};
      PTXGEN_CHECK_RESULT(driver.mem_set_mem_pool(&other, type, own), CUDA_ERROR_INVALID_VALUE);
      PTXGEN_OK(driver.mem_pool_destroy(own));
      PTXGEN_OK(driver.mem_get_mem_pool(&current, &location, type));
      CHECK(current == original);
    }
  }
  CUmemLocation current_node{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  CUmemoryPool pool = nullptr;
  PTXGEN_CHECK_RESULT(driver.mem_get_mem_pool(&pool, &current_node, CU_MEM_ALLOCATION_TYPE_PINNED),
                      CUDA_ERROR_INVALID_VALUE);
  int supported = 0;
  PTXGEN_OK(
      driver.device_get_attribute(&supported, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0));
  CHECK(supported == 1);
}

TEST_CASE("memory of host pools and managed pools is used by both sides") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  for (const CUmemAllocationType type :
       {CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_MANAGED}) {
    const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    CAPTURE(managed);
    CUmemLocation location{CU_MEM_LOCATION_TYPE_HOST, 7};
    CUmemoryPool pool = nullptr;
    PTXGEN_OK(driver.mem_get_default_mem_pool(&pool, &location, type));
    CUdeviceptr address = 0;
    const CUresult result = driver.mem_alloc_from_pool_async(&address, 64, pool, nullptr);
    if (!unified_is_possible()) {
      PTXGEN_CHECK_RESULT(result, CUDA_ERROR_NOT_SUPPORTED);
      CHECK_THAT(fixture.log, Catch::Contains(managed ? "managed memory needs one address"
                                                      : "a memory pool of the host needs one "
                                                        "address"));
      CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
      continue;
    }
    PTXGEN_OK(result);
    CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 64);
    auto* const host = reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
    host[5] = 200;
    CHECK(fixture.bytes_of(address, 64)[5] == 200);
    PTXGEN_OK(driver.memset_d8_async(address, 3, 64, nullptr));
    PTXGEN_OK(driver.ctx_synchronize());
    CHECK(host[63] == 3);
    int is_managed = -1;
    unsigned kind = 0;
    void* host_address = nullptr;
    CUmemoryPool its_pool = nullptr;
    PTXGEN_OK(driver.pointer_get_attribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    PTXGEN_OK(driver.pointer_get_attribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    PTXGEN_OK(driver.pointer_get_attribute(&host_address, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                           address + 5));
    PTXGEN_OK(
        driver.pointer_get_attribute(&its_pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
    CHECK(is_managed == (managed ? 1 : 0));
    CHECK(kind == (managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    CHECK(host_address == host + 5);
    CHECK(its_pool == pool);
    PTXGEN_OK(driver.mem_free_async(address, nullptr));
    CHECK(count(driver, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  }
}

TEST_CASE("stream-ordered memory of 0 bytes has the address 0 and can be freed") {
  DriverFixture fixture;
  CUdeviceptr address = 1;
  PTXGEN_OK(fixture.driver.mem_alloc_async(&address, 0, nullptr));
  CHECK(address == 0);
  PTXGEN_OK(fixture.driver.mem_free_async(address, nullptr));
  CHECK(fixture.log.empty());
}

TEST_CASE("pools of the host and of managed memory report who may access them") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUmemPoolProps wanted = properties();
  wanted.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemoryPool pool = nullptr;
  PTXGEN_OK(driver.mem_pool_create(&pool, &wanted));
  CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccess_flags flags{};
  PTXGEN_OK(driver.mem_pool_get_access(&flags, pool, &host));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  PTXGEN_OK(driver.mem_pool_get_access(&flags, pool, &device));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  const CUmemAccessDesc read{device, CU_MEM_ACCESS_FLAGS_PROT_READ};
  PTXGEN_OK(driver.mem_pool_set_access(pool, &read, 1));
  PTXGEN_OK(driver.mem_pool_get_access(&flags, pool, &device));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
  const CUmemAccessDesc of_host{host, CU_MEM_ACCESS_FLAGS_PROT_READ};
  PTXGEN_CHECK_RESULT(driver.mem_pool_set_access(pool, &of_host, 1), CUDA_ERROR_INVALID_VALUE);
  const CUmemAccessDesc nowhere{{CU_MEM_LOCATION_TYPE_DEVICE, 99}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  PTXGEN_CHECK_RESULT(driver.mem_pool_set_access(pool, &nowhere, 1), CUDA_ERROR_INVALID_DEVICE);
  PTXGEN_OK(driver.mem_pool_destroy(pool));
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  PTXGEN_OK(driver.mem_pool_create(&pool, &wanted));
  PTXGEN_OK(driver.mem_pool_get_access(&flags, pool, &device));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  PTXGEN_CHECK_RESULT(driver.mem_pool_set_access(pool, &read, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("every device has access to managed memory"));
  PTXGEN_OK(driver.mem_pool_destroy(pool));
}

TEST_CASE("large allocations begin at multiples of 2 MiB, small ones where textures may") {
  DriverFixture fixture;
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  std::vector<CUdeviceptr> held;
  for (const std::size_t bytes : {std::size_t{1}, kLarge, std::size_t{700}, kLarge + 1, kLarge - 1,
                                  3 * kLarge, std::size_t{5}}) {
    const CUdeviceptr address = fixture.allocate(bytes);
    REQUIRE(address != 0);
    CHECK(address % (bytes >= kLarge ? kLarge : 512) == 0);
    held.push_back(address);
    // No two of them share a byte.
    PTXGEN_OK(fixture.driver.memset_d8(address, static_cast<unsigned char>(held.size()), bytes));
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    CHECK(fixture.bytes_of(held[i], 1) ==
          std::vector<unsigned char>{static_cast<unsigned char>(i + 1)});
    PTXGEN_OK(fixture.driver.mem_free(held[i]));
  }
}

TEST_CASE("gaps in front of aligned allocations are used in the end") {
  DriverFixture fixture;
  // More allocations than the reservation has addresses for, did it not use freed ones again.
  constexpr std::size_t kBytes = (std::size_t{30} << 30) + 1;
  for (int i = 0; i < 20; ++i) {
    const CUdeviceptr address = fixture.allocate(kBytes);
    REQUIRE(address != 0);
    CHECK(address % (std::size_t{2} << 20) == 0);
    PTXGEN_OK(fixture.driver.mem_free(address));
  }
}

TEST_CASE("pinned memory has one address for host and device") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  void* memory = nullptr;
  CUdeviceptr address = 0;
  PTXGEN_OK(driver.mem_host_alloc(&memory, 4096, 0));
  PTXGEN_OK(driver.mem_host_get_device_pointer(&address, memory, 0));
  const auto own = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
  if (!unified_is_possible()) {
    WARN("the sanitizer keeps the device's addresses: pinned memory has two addresses");
  } else {
    CHECK(address == own);
  }
  // Whatever the addresses are, both name the same bytes, for every kind of copy.
  std::memset(memory, 3, 4096);
  CHECK(fixture.bytes_of(address, 4096) == std::vector<unsigned char>(4096, 3));
  const CUdeviceptr other = fixture.allocate(4096);
  PTXGEN_OK(driver.memcpy_unified(other, own, 4096));
  CHECK(fixture.bytes_of(other, 4096) == std::vector<unsigned char>(4096, 3));
  PTXGEN_OK(driver.memset_d8(address, 9, 4096));
  CHECK(static_cast<unsigned char*>(memory)[4095] == 9);
  unsigned type = 0;
  PTXGEN_OK(driver.pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, own));
  CHECK(type == CU_MEMORYTYPE_HOST);
  PTXGEN_OK(driver.mem_free_host(memory));
  {
    // A second context at the same time has no such place; its memory has two addresses.
    DriverFixture second;
    void* its_memory = nullptr;
    PTXGEN_OK(driver.mem_host_alloc(&its_memory, 64, 0));
    PTXGEN_OK(driver.mem_host_get_device_pointer(&address, its_memory, 0));
    std::memset(its_memory, 5, 64);
    CHECK(second.bytes_of(address, 64) == std::vector<unsigned char>(64, 5));
    PTXGEN_OK(driver.mem_free_host(its_memory));
  }
}
