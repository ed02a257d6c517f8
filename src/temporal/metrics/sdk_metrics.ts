import { createServer, type AddressInfo } from 'node:net';

/** How long the SDK may take to write its metrics, in milliseconds. */
const timeoutMs = 5_000;

/** Finds a free port of the loopback address: the SDK's own server does not say which one it has chosen. */
export async function freeLoopbackAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

/** Reads the metrics of Temporal's SDK, `temporal_…`, from its own server. Empty if that does not respond. */
export async function readSdkMetrics(address: string): Promise<string> {
  try {
    const response = await fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(timeoutMs) });
    return response.ok ? await response.text() : '';
  } catch {
    return '';
  }
}
