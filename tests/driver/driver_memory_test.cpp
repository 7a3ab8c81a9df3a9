// tests/driver/driver_memory_test.cpp - contexts and memory of the emulated driver
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "driver_fixture.hpp"

using namespace ptxgen::test;  // NOLINT

TEST_CASE("every entry of the emulated table is there") {
  const Table& driver = emulated::table();
  void (*entries[sizeof(Table) / sizeof(void (*)())])();
  std::memcpy(entries, &driver, sizeof driver);
  for (std::size_t i = 0; i < functions().size(); ++i) {
    INFO(functions()[i].symbol);
    CHECK(entries[i] != nullptr);
  }
}

TEST_CASE("devices tell what the GPU table says") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  int count = 0;
  PTXGEN_OK(driver.device_get_count(&count));
  CHECK(count >= 1);
  char name[64];
  PTXGEN_OK(driver.device_get_name(name, sizeof name, 0));
  CHECK(std::string(name) == "NVIDIA H200 SXM (emulated)");
  PTXGEN_OK(driver.device_get_name(name, 7, 0));
  CHECK(std::string(name) == "NVIDIA");
  int value = 0;
  PTXGEN_OK(driver.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  CHECK(value == 132);
  int minor = -1;
  PTXGEN_OK(driver.device_compute_capability(&value, &minor, 0));
  CHECK(value == 9);
  CHECK(minor == 0);
  int clock = 0;
  int width = 0;
  PTXGEN_OK(driver.device_get_attribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0));
  PTXGEN_OK(driver.device_get_attribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0));
  CHECK(2.0 * clock * 1e3 * width / 8 == Approx(4800e9));
  PTXGEN_CHECK_RESULT(
      driver.device_get_attribute(&value, static_cast<CUdevice_attribute>(100000), 0),
      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count),
                      CUDA_ERROR_INVALID_DEVICE);
  CUdevice device = -1;
  PTXGEN_CHECK_RESULT(driver.device_get(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  char bus[16];
  PTXGEN_OK(driver.device_get_pci_bus_id(bus, sizeof bus, 0));
  PTXGEN_OK(driver.device_get_by_pci_bus_id(&device, bus));
  CHECK(device == 0);
  const char* text = nullptr;
  PTXGEN_OK(driver.get_error_name(CUDA_ERROR_NOT_READY, &text));
  CHECK(std::string(text) == "CUDA_ERROR_NOT_READY");
  PTXGEN_CHECK_RESULT(driver.get_error_string(static_cast<CUresult>(4242), &text),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}

TEST_CASE("the driver's version follows the newest PTX") {
  const Table& driver = emulated::table();
  int version = 0;
  PTXGEN_OK(driver.driver_get_version(&version));
  CHECK(version == 13000);
  emulated::set_newest_ptx(78);
  PTXGEN_OK(driver.driver_get_version(&version));
  CHECK(version == 11080);
  emulated::set_newest_ptx(94);
  PTXGEN_OK(driver.driver_get_version(&version));
  CHECK(version == 13040);
  emulated::set_newest_ptx(90);
}

TEST_CASE("contexts are current per thread, in a stack") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUcontext seen = nullptr;
  PTXGEN_OK(driver.ctx_get_current(&seen));
  CHECK(seen == fixture.context);
  CUcontext second = nullptr;
  PTXGEN_OK(driver.ctx_create_v2(&second, CU_CTX_SCHED_SPIN, 0));
  unsigned flags = 0;
  PTXGEN_OK(driver.ctx_get_flags(&flags));
  CHECK(flags == CU_CTX_SCHED_SPIN);
  std::thread([&] {
    CUcontext other = second;
    CHECK(driver.ctx_get_current(&other) == CUDA_SUCCESS);
    CHECK(other == nullptr);
    CUdeviceptr address = 0;
    CHECK(driver.mem_alloc(&address, 4) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(driver.ctx_set_current(second) == CUDA_SUCCESS);
    CHECK(driver.mem_alloc(&address, 4) == CUDA_SUCCESS);
  }).join();
  PTXGEN_OK(driver.ctx_push_current(fixture.context));
  PTXGEN_OK(driver.ctx_pop_current(&seen));
  CHECK(seen == fixture.context);
  PTXGEN_OK(driver.ctx_push_current(second));
  PTXGEN_OK(driver.ctx_destroy(second));  // current: popped, the entry below it is left
  PTXGEN_OK(driver.ctx_get_current(&seen));
  CUdeviceptr address = 0;
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&address, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  PTXGEN_CHECK_RESULT(driver.ctx_destroy(second), CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_CHECK_RESULT(driver.ctx_push_current(second), CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_OK(driver.ctx_pop_current(nullptr));
  PTXGEN_OK(driver.mem_alloc(&address, 4));
  PTXGEN_CHECK_RESULT(driver.ctx_create_v2(&second, 3, 0), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.ctx_create_v2(&second, 0, 99), CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("the primary context is counted, and its handle survives a reset") {
  const Table& driver = emulated::table();
  PTXGEN_OK(driver.init(0));
  CUcontext first = nullptr;
  CUcontext again = nullptr;
  PTXGEN_OK(driver.device_primary_ctx_retain(&first, 0));
  PTXGEN_OK(driver.device_primary_ctx_retain(&again, 0));
  CHECK(first == again);
  PTXGEN_CHECK_RESULT(driver.ctx_destroy(first), CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_OK(driver.ctx_set_current(first));
  CUdeviceptr address = 0;
  PTXGEN_OK(driver.mem_alloc(&address, 1024));
  PTXGEN_OK(driver.device_primary_ctx_release(0));
  PTXGEN_OK(driver.mem_free(address));
  PTXGEN_OK(driver.device_primary_ctx_reset(0));
  unsigned flags = 0;
  int active = 1;
  PTXGEN_OK(driver.device_primary_ctx_get_state(0, &flags, &active));
  CHECK(active == 0);
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&address, 1024), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  PTXGEN_CHECK_RESULT(driver.device_primary_ctx_release(0), CUDA_ERROR_INVALID_CONTEXT);
  PTXGEN_OK(driver.device_primary_ctx_retain(&again, 0));
  CHECK(again == first);
  PTXGEN_OK(driver.mem_alloc(&address, 1024));  // still current in this thread
  PTXGEN_OK(driver.device_primary_ctx_release(0));
  PTXGEN_OK(driver.ctx_set_current(nullptr));
}

TEST_CASE("memory is given back to the byte") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t before = 0;
  std::size_t total = 0;
  PTXGEN_OK(driver.mem_get_info(&before, &total));
  CHECK(before == total);
  const CUdeviceptr small = fixture.allocate(5);
  const CUdeviceptr large = fixture.allocate(1 << 20);
  REQUIRE(small != 0);
  CHECK(small % 256 == 0);
  std::size_t now = 0;
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(before - now == (1 << 20) + 5);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  PTXGEN_OK(driver.mem_get_address_range(&base, &bytes, large + 77));
  CHECK(base == large);
  CHECK(bytes == 1 << 20);
  PTXGEN_CHECK_RESULT(driver.mem_get_address_range(&base, &bytes, small + 5), CUDA_ERROR_NOT_FOUND);
  PTXGEN_CHECK_RESULT(driver.mem_free(large + 256), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free(small));
  PTXGEN_CHECK_RESULT(driver.mem_free(small), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free(large));
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(now == before);
  CUdeviceptr never = 0;
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&never, 0), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_alloc(nullptr, 4), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&never, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  PTXGEN_CHECK_RESULT(driver.mem_alloc(&never, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("copies go where they should, and nowhere else") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr a = fixture.allocate(1000);
  const CUdeviceptr b = fixture.allocate(1000);
  std::vector<unsigned char> host(1000);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * 7);
  PTXGEN_OK(driver.memcpy_to_device(a, host.data(), host.size()));
  PTXGEN_OK(driver.memcpy_within_device(b, a, 1000));
  CHECK(fixture.bytes_of(b, 1000) == host);
  PTXGEN_OK(driver.memcpy_within_device(b + 10, b, 500));  // overlapping
  CHECK(std::memcmp(fixture.bytes_of(b + 10, 500).data(), host.data(), 500) == 0);
  std::vector<unsigned char> other(1000);
  const auto number = [](const void* memory) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
  };
  PTXGEN_OK(driver.memcpy_unified(number(other.data()), a, 1000));
  CHECK(other == host);
  PTXGEN_OK(driver.memset_d8(b, 0, 1000));
  PTXGEN_OK(driver.memcpy_unified(b, number(other.data()), 1000));
  CHECK(fixture.bytes_of(b, 1000) == host);
  std::fill(other.begin(), other.end(), 0);
  PTXGEN_OK(driver.memcpy_unified(number(other.data()), number(host.data()), 1000));
  CHECK(other == host);

  PTXGEN_OK(driver.memcpy_to_device(a, nullptr, 0));
  PTXGEN_CHECK_RESULT(driver.memcpy_to_device(a, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memcpy_to_device(a + 1, host.data(), 1000), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("cuMemcpyHtoD: 1000 bytes at 0x") &&
                              Catch::Contains("go 1 byte past the end of the allocation at 0x"));
  PTXGEN_CHECK_RESULT(driver.memcpy_to_host(other.data(), 4096, 8), CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log, Catch::Contains("are in no allocation of the current context"));
  PTXGEN_CHECK_RESULT(driver.memcpy_within_device(a, b + 999, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("fills write elements") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const std::size_t bytes = 200000;
  const CUdeviceptr a = fixture.allocate(bytes);
  PTXGEN_OK(driver.memset_d32(a, 0x04030201u, bytes / 4));
  auto host = fixture.bytes_of(a, bytes);
  REQUIRE(host.size() == bytes);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += host[i] != i % 4 + 1;
  CHECK(wrong == 0);
  PTXGEN_OK(driver.memset_d16(a + 2, 0xbbaa, 1));
  PTXGEN_OK(driver.memset_d8(a + 5, 0x77, 1));
  host = fixture.bytes_of(a, 8);
  CHECK(host == std::vector<unsigned char>{1, 2, 0xaa, 0xbb, 1, 0x77, 3, 4});
  PTXGEN_CHECK_RESULT(driver.memset_d32(a + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memset_d8(a, 0, bytes + 1), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memset_d32(a, 0, ~std::size_t{0} / 2), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.memset_2d_d8(a, 16, 9, 4, 3));
  host = fixture.bytes_of(a, 40);
  CHECK(host[3] == 9);
  CHECK(host[4] != 9);
  CHECK(host[16] == 9);
  CHECK(host[35] == 9);
  CHECK(host[36] != 9);
}

TEST_CASE("two-dimensional copies keep to their rectangles") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUdeviceptr a = 0;
  std::size_t pitch = 0;
  PTXGEN_OK(driver.mem_alloc_pitch(&a, &pitch, 100, 8, 4));
  CHECK(pitch == 512);
  PTXGEN_OK(driver.memset_d8(a, 0, pitch * 8));
  std::vector<unsigned char> host(60 * 8);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i + 1);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 60;
  copy.srcXInBytes = 10;
  copy.srcY = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = pitch;
  copy.dstXInBytes = 3;
  copy.dstY = 1;
  copy.WidthInBytes = 40;
  copy.Height = 5;
  PTXGEN_OK(driver.memcpy_2d(&copy));
  auto seen = fixture.bytes_of(a, pitch * 8);
  std::size_t wrong = 0;
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < pitch; ++x) {
      const bool inside = y >= 1 && y < 6 && x >= 3 && x < 43;
      const unsigned char expected = inside ? host[(y - 1 + 2) * 60 + (x - 3) + 10] : 0;
      wrong += seen[y * pitch + x] != expected;
    }
  }
  CHECK(wrong == 0);
  copy.Height = 8;
  PTXGEN_CHECK_RESULT(driver.memcpy_2d(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 5;
  copy.srcPitch = 30;
  PTXGEN_CHECK_RESULT(driver.memcpy_2d(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = 60;
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;  // and no array
  PTXGEN_CHECK_RESULT(driver.memcpy_2d(&copy), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memcpy_2d(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("three-dimensional copies keep to their boxes") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  constexpr std::size_t kPitch = 20;
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kPlanes = 4;
  CUdeviceptr a = 0;
  PTXGEN_OK(driver.mem_alloc(&a, kPitch * kRows * kPlanes));
  PTXGEN_OK(driver.memset_d8(a, 0, kPitch * kRows * kPlanes));
  std::vector<unsigned char> host(8 * 3 * 2);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i + 1);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 8;
  copy.srcHeight = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = kPitch;
  copy.dstHeight = kRows;
  copy.dstXInBytes = 2;
  copy.dstY = 1;
  copy.dstZ = 1;
  copy.WidthInBytes = 7;
  copy.Height = 3;
  copy.Depth = 2;
  const auto wrong = [&] {
    const auto seen = fixture.bytes_of(a, kPitch * kRows * kPlanes);
    std::size_t count = 0;
    for (std::size_t z = 0; z < kPlanes; ++z) {
      for (std::size_t y = 0; y < kRows; ++y) {
        for (std::size_t x = 0; x < kPitch; ++x) {
          const bool inside = z >= 1 && z < 3 && y >= 1 && y < 4 && x >= 2 && x < 9;
          const unsigned char expected =
              inside ? host[((z - 1) * 3 + y - 1) * 8 + x - 2] : static_cast<unsigned char>(0);
          count += seen[(z * kRows + y) * kPitch + x] != expected;
        }
      }
    }
    return count;
  };
  PTXGEN_OK(driver.memcpy_3d(&copy));
  CHECK(wrong() == 0);
  PTXGEN_OK(driver.memset_d8(a, 0, kPitch * kRows * kPlanes));
  PTXGEN_OK(driver.memcpy_3d_async(&copy, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(wrong() == 0);
  copy.Depth = 4;  // beyond the allocation
  PTXGEN_CHECK_RESULT(driver.memcpy_3d(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.Depth = 2;
  copy.dstHeight = 2;  // planes overlap
  PTXGEN_CHECK_RESULT(driver.memcpy_3d(&copy), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memcpy_3d(nullptr), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memcpy_3d_async(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("pinned memory has a host and a device address for the same bytes") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t before = 0;
  std::size_t total = 0;
  PTXGEN_OK(driver.mem_get_info(&before, &total));
  void* memory = nullptr;
  PTXGEN_OK(driver.mem_host_alloc(&memory, 10000, kMemHostAllocDeviceMap));
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0);
  std::size_t now = 0;
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(now == before);
  auto* const bytes = static_cast<unsigned char*>(memory);
  std::memset(bytes, 5, 10000);
  CUdeviceptr mapped = 0;
  PTXGEN_OK(driver.mem_host_get_device_pointer(&mapped, bytes + 100, 0));
  CHECK(fixture.bytes_of(mapped, 9900) == std::vector<unsigned char>(9900, 5));
  PTXGEN_OK(driver.memset_d8(mapped, 6, 1));
  CHECK(bytes[99] == 5);
  CHECK(bytes[100] == 6);
  unsigned type = 0;
  const auto number = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(bytes));
  PTXGEN_OK(driver.pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, number + 5));
  CHECK(type == CU_MEMORYTYPE_HOST);
  CUdeviceptr device = 0;
  PTXGEN_OK(
      driver.pointer_get_attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, number + 100));
  CHECK(device == mapped);
  unsigned flags = 0;
  PTXGEN_OK(driver.mem_host_get_flags(&flags, memory));
  CHECK(flags == kMemHostAllocDeviceMap);
  PTXGEN_CHECK_RESULT(driver.mem_free(mapped - 100), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_free_host(bytes + 1), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free_host(memory));
  PTXGEN_CHECK_RESULT(driver.mem_free_host(memory), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(now == before);
}

TEST_CASE("attributes of pointers need no current context") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr device = fixture.allocate(64);
  int host = 0;
  CUcontext context = nullptr;
  PTXGEN_OK(driver.ctx_pop_current(&context));
  int ordinal = -1;
  PTXGEN_OK(driver.pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device));
  CHECK(ordinal == 0);
  CUcontext owner = nullptr;
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  std::array<CUpointer_attribute, 2> attributes{CU_POINTER_ATTRIBUTE_CONTEXT,
                                                CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  std::array<void*, 2> values{&owner, &type};
  PTXGEN_OK(driver.pointer_get_attributes(2, attributes.data(), values.data(), device));
  CHECK(owner == context);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  PTXGEN_OK(driver.pointer_get_attributes(2, attributes.data(), values.data(),
                                          reinterpret_cast<std::uintptr_t>(&host)));
  CHECK(owner == nullptr);
  PTXGEN_OK(driver.ctx_push_current(context));
}

TEST_CASE("registered memory and unknown pointers") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::vector<char> host(4096);
  PTXGEN_OK(driver.mem_host_register(host.data(), host.size(), 0));
  PTXGEN_CHECK_RESULT(driver.mem_host_register(host.data() + 5, 10, 0),
                      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  PTXGEN_CHECK_RESULT(driver.mem_host_unregister(host.data() + 5), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_host_unregister(host.data()));
  PTXGEN_CHECK_RESULT(driver.mem_host_unregister(host.data()),
                      CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  const CUdeviceptr device = fixture.allocate(64);
  int ordinal = -1;
  PTXGEN_OK(driver.pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device));
  CHECK(ordinal == 0);
  const auto unknown = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host.data()));
  PTXGEN_CHECK_RESULT(
      driver.pointer_get_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, unknown),
      CUDA_ERROR_INVALID_VALUE);
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
  unsigned type = 7;
  CUcontext owner = fixture.context;
  void* data[] = {&type, &owner};
  PTXGEN_OK(driver.pointer_get_attributes(2, wanted, data, unknown));
  CHECK(type == 0);
  CHECK(owner == nullptr);
  PTXGEN_OK(driver.pointer_get_attributes(2, wanted, data, device + 3));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(owner == fixture.context);
}

TEST_CASE("registered memory has a device pointer whose writes the host sees") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t before = 0;
  std::size_t total = 0;
  PTXGEN_OK(driver.mem_get_info(&before, &total));
  std::vector<unsigned char> host(1000, 1);
  CUdeviceptr device = 0;
  PTXGEN_CHECK_RESULT(driver.mem_host_get_device_pointer(&device, host.data(), 0),
                      CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_host_register(host.data(), host.size(), kMemHostAllocDeviceMap));
  PTXGEN_OK(driver.mem_host_get_device_pointer(&device, host.data() + 100, 0));
  PTXGEN_OK(driver.memset_d8_async(device, 7, 50, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(host[99] == 1);
  CHECK(host[100] == 7);
  CHECK(host[149] == 7);
  CHECK(host[150] == 1);
  // What the host writes is there for the next operation, and is not undone by it.
  host[120] = 9;
  host[10] = 3;
  const CUdeviceptr copy = fixture.allocate(50);
  PTXGEN_OK(driver.memcpy_within_device(copy, device, 50));
  CHECK(fixture.bytes_of(copy, 50)[20] == 9);
  CHECK(host[10] == 3);
  PTXGEN_CHECK_RESULT(driver.memset_d8_async(device, 0, 901, nullptr), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_free(device - 100), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_free_host(host.data()), CUDA_ERROR_INVALID_VALUE);
  unsigned type = 0;
  PTXGEN_OK(driver.pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  CHECK(type == CU_MEMORYTYPE_HOST);
  CUdeviceptr found = 0;
  const auto address = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(&host[100]));
  PTXGEN_OK(driver.pointer_get_attribute(&found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address));
  CHECK(found == device);
  PTXGEN_OK(driver.mem_host_unregister(host.data()));
  PTXGEN_CHECK_RESULT(driver.memset_d8_async(device, 0, 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free(copy));
  std::size_t now = 0;
  PTXGEN_OK(driver.mem_get_info(&now, &total));
  CHECK(now == before);
}

TEST_CASE("managed memory has one address for the host and for kernels") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  CUdeviceptr address = 0;
  PTXGEN_CHECK_RESULT(driver.mem_alloc_managed(&address, 64, 3), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.mem_alloc_managed(&address, 0, 1), CUDA_ERROR_INVALID_VALUE);
  void* pinned = nullptr;
  CUdeviceptr mapped = 0;
  PTXGEN_OK(driver.mem_host_alloc(&pinned, 64, 0));
  PTXGEN_OK(driver.mem_host_get_device_pointer(&mapped, pinned, 0));
  if (mapped != reinterpret_cast<std::uintptr_t>(pinned)) {
    PTXGEN_CHECK_RESULT(driver.mem_alloc_managed(&address, 64, 1), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_THAT(fixture.log, Catch::Contains("cuMemAllocManaged: managed memory needs one address"));
    return;
  }
  PTXGEN_OK(driver.mem_alloc_managed(&address, 64, CU_MEM_ATTACH_GLOBAL));
  auto* const host = reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
  host[5] = 200;
  CHECK(fixture.bytes_of(address, 64)[5] == 200);
  PTXGEN_OK(driver.memset_d8_async(address, 3, 64, nullptr));
  PTXGEN_OK(driver.ctx_synchronize());
  CHECK(host[63] == 3);
  int managed = 0;
  PTXGEN_OK(driver.pointer_get_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address + 9));
  CHECK(managed == 1);
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  PTXGEN_OK(driver.mem_advise(address, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
  PTXGEN_OK(driver.mem_prefetch_async(address, 64, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, nullptr));
  PTXGEN_OK(driver.stream_attach_mem_async(nullptr, address, 0, CU_MEM_ATTACH_SINGLE));
  PTXGEN_CHECK_RESULT(
      driver.mem_prefetch_async(address, 64, {CU_MEM_LOCATION_TYPE_DEVICE, 99}, 0, nullptr),
      CUDA_ERROR_INVALID_DEVICE);
  PTXGEN_CHECK_RESULT(driver.mem_advise(address, 65, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
                      CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr plain = fixture.allocate(64);
  PTXGEN_CHECK_RESULT(driver.mem_advise(plain, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
                      CUDA_ERROR_INVALID_VALUE);
  CHECK_THAT(fixture.log,
             Catch::Contains("is not managed; allocate it with cuMemAllocManaged or from"));
  PTXGEN_OK(driver.mem_free(address));
  PTXGEN_OK(driver.mem_free(plain));
}

TEST_CASE("fills of rows in all widths") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  const CUdeviceptr rows = fixture.allocate(4 * 64);
  PTXGEN_OK(driver.memset_d8(rows, 0, 4 * 64));
  PTXGEN_OK(driver.memset_2d_d32(rows, 64, 0x01020304, 2, 4));
  PTXGEN_OK(driver.memset_2d_d16_async(rows + 16, 64, 0x0506, 3, 3, nullptr));
  PTXGEN_OK(driver.memset_2d_d8_async(rows + 32, 64, 9, 1, 2, nullptr));
  PTXGEN_OK(driver.memset_2d_d32_async(rows + 40, 64, 0x0a0b0c0d, 1, 1, nullptr));
  PTXGEN_OK(driver.memset_2d_d16(rows + 48, 64, 0x0e0f, 1, 4));
  const std::vector<unsigned char> bytes = fixture.bytes_of(rows, 4 * 64);
  REQUIRE(bytes.size() == 4 * 64);
  CHECK(bytes[3 * 64 + 7] == 1);
  CHECK(bytes[3 * 64 + 8] == 0);
  CHECK(bytes[2 * 64 + 21] == 5);
  CHECK(bytes[3 * 64 + 21] == 0);
  CHECK(bytes[1 * 64 + 32] == 9);
  CHECK(bytes[2 * 64 + 32] == 0);
  CHECK(bytes[40] == 0x0d);
  CHECK(bytes[64 + 40] == 0);
  CHECK(bytes[3 * 64 + 49] == 0x0e);
  PTXGEN_CHECK_RESULT(driver.memset_2d_d32(rows + 2, 64, 0, 1, 2), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_CHECK_RESULT(driver.memset_2d_d16(rows, 2, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);
  PTXGEN_OK(driver.mem_free(rows));
}

TEST_CASE("limits are kept") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::size_t value = 0;
  PTXGEN_OK(driver.ctx_get_limit(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 1024);
  PTXGEN_OK(driver.ctx_set_limit(CU_LIMIT_STACK_SIZE, 4096));
  PTXGEN_OK(driver.ctx_get_limit(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 4096);
  PTXGEN_CHECK_RESULT(driver.ctx_get_limit(&value, static_cast<CUlimit>(77)),
                      CUDA_ERROR_UNSUPPORTED_LIMIT);
}

TEST_CASE("threads allocate, copy and free in one context") {
  DriverFixture fixture;
  const Table& driver = fixture.driver;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      if (driver.ctx_set_current(fixture.context) != CUDA_SUCCESS) ++wrong;
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<unsigned char>(t * 31 + i);
        CUdeviceptr address = 0;
        std::vector<unsigned char> host(777, 0);
        if (driver.mem_alloc(&address, host.size()) != CUDA_SUCCESS ||
            driver.memset_d8_async(address, value, host.size(), nullptr) != CUDA_SUCCESS ||
            driver.memcpy_to_host(host.data(), address, host.size()) != CUDA_SUCCESS ||
            driver.mem_free(address) != CUDA_SUCCESS ||
            host != std::vector<unsigned char>(777, value)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  std::size_t free = 0;
  std::size_t total = 0;
  PTXGEN_OK(driver.mem_get_info(&free, &total));
  CHECK(free == total);
}
