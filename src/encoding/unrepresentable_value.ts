/** A value that the file's format cannot hold. */
export interface UnrepresentableValue {
  /** Where the row's tuple begins in the block. */
  readonly rowAt: number;
  readonly column: string;
  /** What is wrong with the value, as the end of a sentence. */
  readonly reason: string;
}
