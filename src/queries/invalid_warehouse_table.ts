/** A table that cannot be registered or removed as asked; the message says why. */
export class InvalidWarehouseTable extends Error {
  override readonly name = 'WarehouseRefused';
}
