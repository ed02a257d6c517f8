/** How many checks or tests passed and failed. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}
