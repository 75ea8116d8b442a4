//===- NcclCollectives.cpp - Collectives from GPU to GPU ------------------===//

#include "NcclCollectives.h"
#include "../Support/Error.h"
#include "../Support/Memory.h"
#include "CollectiveImages.h"

#include <algorithm>

namespace fp8::rt::gpu {

static constexpr unsigned blockThreads = 256;

/// `wire` holds the encoded operand, `pieces` the received pieces, one after
/// another by rank, and `result` their reduction.
struct NcclCollectives::Tensor {
  Reduction reduction;
  cuda::DevicePointer wire, pieces, result;
  cuda::DevicePointer amaxes = 0, exponents = 0;
  cuda::DevicePointer saturated = 0, source = 0, mu = 0; // of the reports
  int64_t number = 0;                                    // of the collective

  const fp8_all_reduce &what() const { return reduction.what; }
  int64_t size() const { return wireSize(what()); }
  bool isNarrow() const { return what().wire != FP8_WIRE_EXACT; }
};

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

NcclCollectives::NcclCollectives(const Device &device, const Nccl &nccl,
                                 fp8_group &group, bool takesIR)
    : device(device), driver(device.driver), nccl(nccl), group(group) {
  device.makeCurrent();
  driver.check(driver.cuStreamCreate(&stream, cuda::streamNonBlocking),
               "make a stream");
  driver.check(driver.cuEventCreate(&finished, cuda::eventDisableTiming),
               "make an event");
  loadKernels(takesIR);
  try {
    open();
  } catch (...) {
    abort();
    throw;
  }
}

NcclCollectives::~NcclCollectives() {
  driver.cuCtxSetCurrent(device.context);
  if (comm)
    nccl.ncclCommDestroy(comm);
  if (memory)
    driver.cuMemFree_v2(memory);
  if (hostReports)
    driver.cuMemFreeHost(hostReports);
  driver.cuModuleUnload(kernels.module);
  driver.cuEventDestroy_v2(finished);
  driver.cuStreamDestroy_v2(stream);
}

void NcclCollectives::loadKernels(bool takesIR) {
  const char *image = takesIR ? collectiveKernelsIR : collectiveKernelsPTX;
  std::string log;
  cuda::Status status = driver.loadModule(image, kernels.module, log);
  driver.check(status, str("load the kernels of collectives (", log, ")"));
  auto find = [&](const char *name) {
    cuda::Function function = nullptr;
    driver.check(driver.cuModuleGetFunction(&function, kernels.module, name),
                 str("find kernel '", name, "'"));
    return function;
  };
  kernels.amax = find("fp8_collective_amax");
  kernels.scales = find("fp8_collective_scales");
  kernels.encode = find("fp8_collective_encode");
  kernels.reduce = find("fp8_collective_reduce");
  kernels.decode = find("fp8_collective_decode");
  kernels.update = find("fp8_collective_update");
  kernels.check = find("fp8_collective_check");
}

/// Connects the ranks. Rank 0 distributes NCCL's id over the group's transport.
void NcclCollectives::open() {
  nccl::UniqueId id = {};
  if (group.rank() == 0)
    check(nccl.ncclGetUniqueId(&id), "make a name for the ranks");
  std::vector<std::string> all =
      group.gatherNow(std::string(id.bytes, sizeof(id.bytes)));
  std::copy(all[0].begin(), all[0].end(), id.bytes);
  nccl::Config config;
  check(nccl.ncclCommInitRankConfig(&comm, static_cast<int>(group.size()), id,
                                    static_cast<int>(group.rank()), &config),
        "connect the ranks");
  settle("connect the ranks");
}

/// Ends work that may be in flight: its kernels wait for other ranks.
void NcclCollectives::abort() {
  if (comm)
    nccl.ncclCommAbort(comm);
  comm = nullptr;
}

//===----------------------------------------------------------------------===//
// Errors and waiting
//===----------------------------------------------------------------------===//

void NcclCollectives::check(nccl::Status status, const std::string &what) {
  if (status != nccl::Success && status != nccl::InProgress)
    group.fail(group.rank(), nccl.textOf(status, what, comm), false);
}

void NcclCollectives::waitFor(const std::function<bool()> &isDone) {
  std::vector<uint8_t> others(group.size(), 1);
  others[group.rank()] = 0;
  auto hasEnded = [&] {
    group.checkForAbort();
    return isDone();
  };
  if (!group.await(hasEnded, others))
    group.failSilent("NCCL");
}

/// Waits until the messages are enqueued.
void NcclCollectives::settle(const std::string &what) {
  waitFor([&] {
    nccl::Status status = nccl::Success;
    check(nccl.ncclCommGetAsyncError(comm, &status), what);
    check(status, what);
    return status == nccl::Success;
  });
}

/// Waits for the GPU, after all work is enqueued.
void NcclCollectives::waitForGPU(const std::function<void()> &enqueued) {
  driver.check(driver.cuEventRecord(finished, stream), "end a collective");
  enqueued();
  waitFor([&] {
    nccl::Status error = nccl::Success;
    check(nccl.ncclCommGetAsyncError(comm, &error), "exchange messages");
    check(error, "exchange messages");
    cuda::Status status = driver.cuEventQuery(finished);
    if (status == cuda::NotReady)
      return false;
    driver.check(status, "reduce over ranks");
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Work of the stream
//===----------------------------------------------------------------------===//

void NcclCollectives::beginMessages() {
  check(nccl.ncclGroupStart(), "begin messages");
}

void NcclCollectives::endMessages() {
  check(nccl.ncclGroupEnd(), "exchange messages");
  settle("exchange messages");
}

void NcclCollectives::send(cuda::DevicePointer from, int64_t bytes,
                           int64_t rank) {
  if (bytes == 0)
    return;
  check(nccl.ncclSend(reinterpret_cast<const void *>(from), bytes, nccl::Bytes,
                      static_cast<int>(rank), comm, stream),
        str("send to rank ", rank));
  sent += bytes;
}

void NcclCollectives::receive(cuda::DevicePointer to, int64_t bytes,
                              int64_t rank) {
  if (bytes > 0)
    check(nccl.ncclRecv(reinterpret_cast<void *>(to), bytes, nccl::Bytes,
                        static_cast<int>(rank), comm, stream),
          str("receive from rank ", rank));
}

void NcclCollectives::copy(cuda::DevicePointer to, cuda::DevicePointer from,
                           int64_t bytes) {
  if (bytes > 0 && to != from)
    driver.check(driver.cuMemcpyDtoDAsync_v2(to, from, bytes, stream),
                 "copy a part");
}

void NcclCollectives::clear(cuda::DevicePointer at, int64_t bytes) {
  if (bytes > 0)
    driver.check(driver.cuMemsetD8Async(at, 0, bytes, stream), "clear memory");
}

/// Launches a kernel; its arguments are 64-bit integers and addresses.
template <typename... Arguments>
void NcclCollectives::launch(cuda::Function function, int64_t threads,
                             Arguments... arguments) {
  static_assert(((sizeof(Arguments) == 8) && ...), "expected 64 bits");
  if (threads == 0)
    return;
  void *addresses[] = {&arguments...};
  int64_t blocks = (threads + blockThreads - 1) / blockThreads;
  if (blocks > INT32_MAX)
    throw Error(FP8_ERROR_INVALID,
                str("expected a tensor of fewer than ",
                    int64_t(blockThreads) * INT32_MAX,
                    " elements where ranks reduce but got ", threads));
  driver.check(driver.cuLaunchKernel(function, static_cast<unsigned>(blocks), 1,
                                     1, blockThreads, 1, 1, 0, stream,
                                     addresses, nullptr),
               "launch a kernel of a collective");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Assigns every tensor its memory, in an allocation that grows as needed.
std::vector<NcclCollectives::Tensor>
NcclCollectives::placeAll(const std::vector<Reduction> &bucket, Tensor &amaxes,
                          Tensor &saturated, Reports &reports) {
  std::vector<Tensor> tensors;
  int64_t blocks = 0;
  for (const Reduction &reduction : bucket)
    blocks += numBlocks(reduction.what);
  auto exactly = [](fp8_reduction reduction, fp8_dtype dtype,
                    int64_t elements) {
    Tensor tensor = {};
    tensor.reduction.what = {"",       reduction, FP8_WIRE_EXACT, dtype, 0,
                             elements, 0};
    return tensor;
  };
  int64_t bytes = 0;
  auto place = [&](int64_t size) {
    cuda::DevicePointer at = memory + bytes;
    bytes += alignUp(size, deviceAlignment);
    return at;
  };
  auto placePieces = [&](Tensor &tensor) {
    int64_t mine = sliceOf(tensor.reduction, group.rank(), group.size()).count;
    tensor.pieces = place(group.size() * mine * tensor.size());
  };
  auto placeEverything = [&] {
    bytes = 0;
    tensors.clear();
    amaxes = exactly(FP8_REDUCE_MAX, FP8_DTYPE_F32, blocks);
    amaxes.wire = amaxes.result = place(blocks * 4);
    placePieces(amaxes);
    saturated = exactly(FP8_REDUCE_SUM, FP8_DTYPE_I64,
                        static_cast<int64_t>(bucket.size()));
    reports.at = place(reports.bytes());
    saturated.wire = saturated.result = reports.saturated(0);
    placePieces(saturated);
    cuda::DevicePointer exponents = place(blocks * 4);
    int64_t block = 0;
    for (const Reduction &reduction : bucket) {
      Tensor tensor = {reduction, addressOf(reduction.in), 0,
                       addressOf(reduction.out)};
      tensor.amaxes = amaxes.wire + block * 4;
      tensor.exponents = exponents + block * 4;
      auto index = static_cast<int64_t>(tensors.size());
      tensor.saturated = reports.saturated(index);
      tensor.source = reports.source(index);
      tensor.mu = reports.mu(index);
      block += numBlocks(reduction.what);
      if (tensor.isNarrow()) {
        tensor.wire = place(wireBytes(reduction.what));
        tensor.result = place(wireBytes(reduction.what));
      }
      placePieces(tensor);
      tensors.push_back(tensor);
    }
  };
  placeEverything();
  if (reserve(bytes))
    placeEverything();
  return tensors;
}

/// Makes the memory at least this large. Returns true if it has moved.
bool NcclCollectives::reserve(int64_t bytes) {
  if (bytes <= memoryBytes)
    return false;
  // No earlier bucket is in flight.
  if (memory)
    driver.check(driver.cuMemFree_v2(memory), "free memory");
  memory = 0;
  memoryBytes = 0;
  driver.check(driver.cuMemAlloc_v2(&memory, bytes),
               str("allocate ", bytesText(bytes), " for what ranks reduce"));
  memoryBytes = bytes;
  return true;
}

/// Each rank sends every other its slice, reduces what it receives in rank
/// order, and sends the result to all.
void NcclCollectives::reduceSlices(const std::vector<Tensor> &tensors) {
  int64_t me = group.rank(), ranks = group.size();
  beginMessages();
  for (const Tensor &tensor : tensors) {
    int64_t size = tensor.size();
    int64_t mine = sliceOf(tensor.reduction, me, ranks).count * size;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (rank == me)
        continue;
      Slice slice = sliceOf(tensor.reduction, rank, ranks);
      send(tensor.wire + slice.begin * size, slice.count * size, rank);
      receive(tensor.pieces + rank * mine, mine, rank);
    }
  }
  endMessages();
  for (const Tensor &tensor : tensors) {
    Slice slice = sliceOf(tensor.reduction, me, ranks);
    int64_t begin = slice.begin * tensor.size(),
            bytes = slice.count * tensor.size();
    copy(tensor.pieces + me * bytes, tensor.wire + begin, bytes);
    launch(kernels.reduce, slice.count, tensor.what().wire, tensor.what().dtype,
           tensor.what().reduction, tensor.pieces, bytes, ranks, slice.count,
           addressOf(tensor.reduction.control), tensor.saturated, tensor.source,
           tensor.result + begin);
    if (tensor.reduction.isFromOwner()) {
      Slice owned = tensor.reduction.owned(me);
      begin = owned.begin * tensor.size();
      copy(tensor.result + begin, tensor.wire + begin,
           owned.count * tensor.size());
    }
  }
  beginMessages();
  for (const Tensor &tensor : tensors) {
    int64_t size = tensor.size();
    Slice mine = resultOf(tensor.reduction, me, ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      if (rank == me)
        continue;
      Slice slice = resultOf(tensor.reduction, rank, ranks);
      send(tensor.result + mine.begin * size, mine.count * size, rank);
      receive(tensor.result + slice.begin * size, slice.count * size, rank);
    }
  }
  endMessages();
}

/// Computes the scales of tensors on an f8 wire, from the amaxes of all ranks.
void NcclCollectives::agreeOnScales(std::vector<Tensor> &tensors,
                                    Tensor &amaxes) {
  constexpr int64_t perThread = 64; // elements, in the kernel
  if (amaxes.what().elements == 0)
    return;
  clear(amaxes.wire, amaxes.what().elements * 4);
  for (const Tensor &tensor : tensors)
    if (isFloat8(tensor.what().wire))
      launch(kernels.amax, (tensor.what().elements + perThread - 1) / perThread,
             tensor.what().dtype, addressOf(tensor.reduction.in),
             tensor.what().elements, blockElements(tensor.what()),
             tensor.amaxes);
  reduceSlices({amaxes});
  for (const Tensor &tensor : tensors)
    launch(kernels.scales, numBlocks(tensor.what()), tensor.what().wire,
           tensor.amaxes, numBlocks(tensor.what()), tensor.exponents);
}

void NcclCollectives::updateMus(std::vector<Tensor> &tensors,
                                Tensor &saturated) {
  bool isAny =
      std::any_of(tensors.begin(), tensors.end(), [](const Tensor &tensor) {
        return isFloat8(tensor.what().wire);
      });
  if (!isAny)
    return;
  reduceSlices({saturated});
  for (const Tensor &tensor : tensors)
    if (isFloat8(tensor.what().wire))
      launch(kernels.update, 1, addressOf(tensor.reduction.control),
             tensor.saturated, tensor.what().elements, group.size(), tensor.mu);
}

/// Copies the reports to the host, behind the work that makes them.
void NcclCollectives::fetchReports(const Reports &reports) {
  if (reports.bytes() > hostBytes) {
    if (hostReports)
      driver.check(driver.cuMemFreeHost(hostReports),
                   "free memory of the host");
    hostReports = nullptr;
    hostBytes = 0;
    driver.check(driver.cuMemHostAlloc(&hostReports, reports.bytes(), 0),
                 "allocate memory of the host for reports of collectives");
    hostBytes = reports.bytes();
  }
  driver.check(driver.cuMemcpyDtoHAsync_v2(hostReports, reports.at,
                                           reports.bytes(), stream),
               "copy reports of collectives");
}

/// Notes what the reports say, once they are on the host.
void NcclCollectives::noteReports(const std::vector<Tensor> &tensors,
                                  const Reports &reports) {
  auto *numbers = static_cast<const int64_t *>(hostReports);
  auto *mus = reinterpret_cast<const float *>(numbers + 2 * reports.tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const fp8_all_reduce &what = tensors[i].what();
    int64_t distance = numbers[reports.tensors + i];
    if (distance > 0)
      group.noteNonFinite(tensors[i].number, group.size() - distance,
                          what.label);
    if (isFloat8(what.wire))
      noteScale(group, tensors[i].reduction, mus + 2 * i, numbers[i]);
  }
}

std::vector<int64_t>
NcclCollectives::reduce(const std::vector<Reduction> &bucket,
                        const std::function<void()> &enqueued) {
  device.makeCurrent();
  sent = 0;
  try {
    Tensor amaxes, saturated;
    Reports reports(static_cast<int64_t>(bucket.size()));
    std::vector<Tensor> tensors = placeAll(bucket, amaxes, saturated, reports);
    for (Tensor &tensor : tensors)
      tensor.number = group.countCollective();
    clear(reports.at, reports.bytes());
    agreeOnScales(tensors, amaxes);
    for (const Tensor &tensor : tensors)
      if (tensor.isNarrow())
        launch(kernels.encode, tensor.what().elements, tensor.what().wire,
               tensor.what().dtype, addressOf(tensor.reduction.in),
               tensor.what().elements, blockElements(tensor.what()),
               tensor.exponents, tensor.wire);
    reduceSlices(tensors);
    for (const Tensor &tensor : tensors)
      if (tensor.isNarrow() && (!tensor.reduction.isToOwner() ||
                                tensor.reduction.owned(group.rank()).count > 0))
        launch(kernels.decode, tensor.what().elements, tensor.what().wire,
               tensor.what().dtype, tensor.what().reduction, tensor.result,
               tensor.what().elements, blockElements(tensor.what()),
               tensor.exponents, addressOf(tensor.reduction.control),
               group.size(), addressOf(tensor.reduction.out));
    updateMus(tensors, saturated);
    fetchReports(reports);
    waitForGPU(enqueued);
    noteReports(tensors, reports);
  } catch (...) {
    abort();
    throw;
  }
  group.noteSent(sent);
  return splitSentBytes(sent, bucket, group.rank(), group.size());
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

/// Enqueues the check for values that are not finite (Exchange.cpp). Returns
/// false if nothing is to be checked.
bool NcclCollectives::checkWhatIsSent(const Exchange &exchange,
                                      const std::vector<Part> &parts) {
  const fp8_exchange &what = exchange.what;
  int64_t elements = elementsToCheck(what, parts);
  if (elements == 0)
    return false;
  Reports reports(1);
  reserve(reports.bytes());
  reports.at = memory;
  clear(reports.at, reports.bytes());
  launch(kernels.check, elements, what.dtype, addressOf(exchange.in), elements,
         what.summed, reports.saturated(0));
  fetchReports(reports);
  return true;
}

void NcclCollectives::exchange(const Exchange &exchange,
                               const std::function<void()> &enqueued) {
  device.makeCurrent();
  sent = 0;
  try {
    std::vector<Part> parts = partsOf(exchange, group.rank());
    int64_t number = group.countCollective();
    bool isChecked = checkWhatIsSent(exchange, parts);
    bool receivesAny = std::any_of(parts.begin(), parts.end(),
                                   [](const Part &part) { return part.to; });
    // StableHLO specifies zeros for ranks that receive nothing.
    if (!receivesAny)
      clear(addressOf(exchange.out), resultBytes(exchange.what));
    beginMessages();
    for (const Part &part : parts) {
      if (part.rank == group.rank())
        continue;
      if (part.from)
        send(addressOf(part.from), exchange.what.part_bytes, part.rank);
      if (part.to)
        receive(addressOf(part.to), exchange.what.part_bytes, part.rank);
    }
    endMessages();
    for (const Part &part : parts)
      if (part.rank == group.rank())
        copy(addressOf(part.to), addressOf(part.from),
             exchange.what.part_bytes);
    waitForGPU(enqueued);
    if (isChecked && static_cast<const int64_t *>(hostReports)[0] != 0)
      group.noteNonFinite(number, group.rank(), exchange.what.label);
  } catch (...) {
    abort();
    throw;
  }
  group.noteSent(sent);
}

} // namespace fp8::rt::gpu
