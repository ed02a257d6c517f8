/** The sort key of a row. `first` and `last` of a file and the cursor of a run consist of sort keys. */
export interface SortKey {
  /** ISO 8601 UTC with microseconds. */
  readonly inserted_at: string;
  /** `uuid` of an event, `distinct_id` of a person. */
  readonly id: string;
  /** A row of a key whose rows need more than a page; absent when no row of the key follows. */
  readonly within?: RowOfKey;
}

/** A row among those with one key, which are read in the order of their hashes. */
export interface RowOfKey {
  /** Hash of what the source stores of the row: a signed 64-bit integer. */
  readonly row_hash: string;
  /** How many rows with this hash there are up to this one. They are equal, so it does not matter which they are. */
  readonly copies: number;
}

/** The order of events in the source and in files. Times and uuids have a fixed format, so their text has their order. */
export function compareSortKeys(one: SortKey, other: SortKey): number {
  if (one.inserted_at !== other.inserted_at) return one.inserted_at < other.inserted_at ? -1 : 1;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}
