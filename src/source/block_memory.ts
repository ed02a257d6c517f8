/** Memory of blocks. A block that is taken has at least the wanted size. */
export interface BlockMemory {
  take(size: number): Buffer;
  /** Gives a block back; nothing may use it afterwards. */
  give(memory: Buffer): void;
  /** Whether a block may keep memory that it does not use, because the memory is used again. */
  readonly recycled: boolean;
}

/** New memory for each block, left to the garbage collector or transferred to another thread. */
export const newMemory: BlockMemory = {
  take: (size) => Buffer.allocUnsafeSlow(size),
  give: () => undefined,
  recycled: false,
};

/** How much larger than wanted a recycled block may be. */
const maxExcess = 2;
/** How long unused memory is kept, in milliseconds: from one page to the next, not from one export to the next. */
const keptMs = 2_000;

/**
 * Memory that is used for one block after another, up to `limit` unused bytes. New memory costs a page fault for every
 * 4 KiB, and makes the garbage collector run, as it counts as growth.
 */
export function createBlockMemory(limit: number): BlockMemory {
  const free: Buffer[] = [];
  let freeBytes = 0;
  let release: NodeJS.Timeout | undefined;

  const releaseAll = (): void => {
    for (const memory of free.splice(0)) releaseBuffer(memory);
    freeBytes = 0;
  };

  return {
    recycled: true,
    take(size) {
      // The last one given is the most likely to be in the CPU's cache.
      const index = free.findLastIndex(
        (memory) => memory.length >= size && memory.length <= Math.max(1, size) * maxExcess,
      );
      const [memory] = index < 0 ? [] : free.splice(index, 1);
      if (!memory) return Buffer.allocUnsafeSlow(size);
      freeBytes -= memory.length;
      return memory;
    },
    give(memory) {
      const whole = Buffer.from(memory.buffer as ArrayBuffer);
      if (freeBytes + whole.length > limit) {
        releaseBuffer(whole);
        return;
      }
      free.push(whole);
      freeBytes += whole.length;
      release?.refresh();
      release ??= setTimeout(releaseAll, keptMs).unref();
    },
  };
}

/** Releases memory at once. */
function releaseBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
