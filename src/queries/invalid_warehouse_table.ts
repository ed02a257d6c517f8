/** A table that cannot be registered or removed. The message explains why. */
export class InvalidWarehouseTable extends Error {
  override readonly name = 'InvalidWarehouseTable';
}
