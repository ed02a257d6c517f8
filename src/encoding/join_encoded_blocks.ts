import type { ReservedBlock } from './encode_blocks.ts';
import type { BlockGrouping } from './encoder.ts';
import type { MemoryReservation } from './memory_budget.ts';

/**
 * Joins encoded blocks as their grouping says, and earlier when the process exceeds its memory budget. The blocks of a
 * group stay in memory until it is joined.
 */
export async function* joinEncodedBlocks(
  blocks: AsyncGenerator<ReservedBlock>,
  grouping: BlockGrouping,
  memory: Pick<MemoryReservation, 'isOverBudget' | 'reserveEncoded' | 'releaseEncoded'>,
): AsyncGenerator<ReservedBlock> {
  let waiting: ReservedBlock[] = [];

  const join = async (): Promise<ReservedBlock> => {
    const group = waiting;
    waiting = [];
    const block = await grouping.join(group.map((each) => each.block));
    for (const { release } of group) release();
    const { length } = block.bytes;
    memory.reserveEncoded(length);
    return { block, release: () => memory.releaseEncoded(length) };
  };

  for await (const block of blocks) {
    waiting.push(block);
    if (memory.isOverBudget() || grouping.isComplete(waiting.map((each) => each.block))) yield join();
  }
  if (waiting.length > 0) yield join();
}
