/**
 * Calls `work` for every item, `limit` at a time. After the first error it starts no further item, waits for the running
 * ones and throws the error.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const errors: unknown[] = [];
  const runNext = async (): Promise<void> => {
    for (let next = iterator.next(); !next.done && errors.length === 0; next = iterator.next())
      await work(next.value).catch((error: unknown) => errors.push(error));
  };
  await Promise.all(Array.from({ length: limit }, runNext));
  if (errors.length > 0) throw errors[0];
}
