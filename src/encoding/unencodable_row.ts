/** The file format cannot represent a value. Permanent: the row has to be fixed in the source. */
export class UnencodableRow extends Error {
  override readonly name = 'UnencodableRow';
  /** The row's uuid (events) or distinct_id (persons). */
  readonly row: string;
  readonly column: string;
  /** The problem with the value, as the end of a sentence. */
  readonly reason: string;

  constructor(row: string, column: string, reason: string) {
    super(`Row ${row} cannot be exported: column ${column} ${reason}.`);
    this.row = row;
    this.column = column;
    this.reason = reason;
  }
}

/** A block does not have the expected structure. This is a bug in exportd or damaged data, never a problem of a row. */
export class MalformedBlock extends Error {
  override readonly name = 'MalformedBlock';
}
