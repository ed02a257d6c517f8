/** A page of rows, and the rows that its neighbours start at; null where there is none. */
export interface Page<Row> {
  readonly page: readonly Row[];
  /** The last row, if rows follow it. */
  readonly next: Row | null;
  /** The first row, if rows precede it. */
  readonly previous: Row | null;
}

/**
 * Makes a page of rows that were read with one row more than `limit`, which shows whether there are more.
 * `backwards`: the rows were read from the cursor towards the start. `continued`: there was a cursor.
 */
export function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  { backwards, continued }: { readonly backwards: boolean; readonly continued: boolean },
): Page<Row> {
  const hasMore = rows.length > limit;
  const page = rows.slice(0, limit);
  if (backwards) page.reverse();
  const hasNext = backwards || hasMore;
  const hasPrevious = backwards ? hasMore : continued;
  return {
    page,
    next: (hasNext ? page.at(-1) : undefined) ?? null,
    previous: (hasPrevious ? page[0] : undefined) ?? null,
  };
}
