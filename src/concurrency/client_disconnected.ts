/** The client closed the connection before its response was ready. The abort reason of what was done for it. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';

  constructor() {
    super('The client that waited for the answer disconnected.');
  }
}
