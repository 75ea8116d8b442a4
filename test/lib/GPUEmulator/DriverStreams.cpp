//===- DriverStreams.cpp - Streams and events of the emulated driver ------===//

#include "Driver.h"

using fp8::emulator::DeviceMemory;

Status cuStreamCreate(Stream *stream, unsigned) {
  FP8_ENTER_CONTEXT()
  *stream = new StreamHandle();
  device.handles.insert(*stream);
  device.streams.insert(*stream);
  return Success;
}

Status cuStreamDestroy_v2(Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(stream))
    return InvalidHandle;
  device.drain(stream);
  device.streams.erase(stream);
  delete stream;
  return Success;
}

Status cuStreamSynchronize(Stream stream) {
  FP8_ENTER_CONTEXT()
  if (device.knows(stream) && stream->capture)
    return NotSupported; // Captured work does not run.
  if (!device.knows(stream))
    return InvalidHandle;
  return device.wait(lock, [&] { return stream->work.empty(); }, stream);
}

Status cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(stream))
    return InvalidHandle;
  if (stream->capture)
    return InvalidValue;
  stream->capture = std::make_unique<GraphHandle>();
  return Success;
}

Status cuStreamEndCapture(Stream stream, Graph *graph) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(stream) || !stream->capture)
    return InvalidHandle;
  *graph = stream->capture.release();
  device.handles.insert(*graph);
  return Success;
}

/// Only libraries use this.
extern "C" __attribute__((visibility("default"))) Status
cuLaunchHostFunc(Stream stream, void (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] {
    function(data);
    return Success;
  });
}

/// Not a function of the driver: for libraries whose kernels wait for those of
/// other processes. Calls `function` again while it returns
/// CUDA_ERROR_NOT_READY.
extern "C" __attribute__((visibility("default"))) Status
fp8_emulator_work(Stream stream, Status (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return function(data); });
}

/// Not a function of the driver: for libraries whose kernels run on the host.
/// Checks an access to device memory by such a kernel. Returns false if a GPU
/// kernel would fault.
extern "C" __attribute__((visibility("default"))) bool
fp8_emulator_access(DevicePointer address, size_t bytes, bool writes) {
  DeviceMemory &memory = *gpu().memory;
  if (!memory.find(address, bytes))
    return false;
  gpu().touch(address, bytes, writes);
  if (writes)
    memory.setWritten(address, bytes, true);
  for (size_t i = 0; i < bytes; ++i)
    if (!memory.isWritten(address + i))
      return false;
  return true;
}

/// Runs the event's stream until the event has completed that record. Returns
/// NotReady if the stream waits for something outside this device.
static Status waitFor(const EventHandle &event, uint64_t record) {
  while (event.completed < record && gpu().runNext(event.stream))
    ;
  if (gpu().sticky != Success)
    return gpu().sticky;
  return event.completed < record ? NotReady : Success;
}

Status cuEventCreate(Event *event, unsigned) {
  FP8_ENTER_CONTEXT()
  *event = new EventHandle();
  device.handles.insert(*event);
  return Success;
}

Status cuEventDestroy_v2(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(event))
    return InvalidHandle;
  device.drainAll(); // Pending work may use it.
  delete event;
  return Success;
}

Status cuEventRecord(Event event, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  event->stream = stream;
  ++event->recorded;
  return device.enqueue(stream, [event] {
    ++event->completed;
    return Success;
  });
}

Status cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  if (flags != 0)
    return InvalidValue;
  // Waits for the records made so far, if there are any.
  return device.enqueue(stream, [event, record = event->recorded] {
    return waitFor(*event, record);
  });
}

/// A query makes progress, so that polling ends.
Status cuEventQuery(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  return waitFor(*event, event->recorded);
}

Status cuEventSynchronize(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  return device.wait(
      lock,
      [&, record = event->recorded] { return event->completed >= record; },
      event->stream);
}

Status cuEventElapsedTime(float *milliseconds, Event, Event) {
  FP8_ENTER_CONTEXT()
  *milliseconds = 0; // Times are not those of a GPU.
  return Success;
}
