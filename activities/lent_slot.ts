import type { ExportSlots } from '../src/temporal/export_slots.ts';

/** How often it is looked whether an attempt gets on, within the time after which it lends its slot. */
const looksPerWait = 4;

/**
 * Runs `work`, which lends its slot to another activity while it does not get on for `stillMs` or longer: it waits for
 * a server then, and needs no processor.
 * @param progress how far it has come; any change counts as getting on.
 */
export async function lendingSlot<Result>(
  slots: Pick<ExportSlots, 'lend'>,
  stillMs: number,
  progress: () => number,
  work: () => Promise<Result>,
): Promise<Result> {
  let before = progress();
  let since = performance.now();
  let takeBack: (() => void) | undefined;
  const look = (): void => {
    const now = progress();
    if (now !== before) {
      before = now;
      since = performance.now();
      takeBack?.();
      takeBack = undefined;
    } else if (!takeBack && performance.now() - since >= stillMs) takeBack = slots.lend();
  };
  const timer = setInterval(look, stillMs / looksPerWait);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    takeBack?.();
  }
}
