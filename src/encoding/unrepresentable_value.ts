/** A value that the file format cannot represent. */
export interface UnrepresentableValue {
  /** The offset of the row's tuple in the block. */
  readonly rowAt: number;
  readonly column: string;
  /** The problem with the value, as the end of a sentence. */
  readonly reason: string;
}
