import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { connectionOptions, type ConnectionSettings } from './connection_options.ts';

const defaultPort = 7233;

/** What a client of HTTP/2 sends first: the connection preface and an empty SETTINGS frame. */
const clientPreface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** The outcome of a probe. */
export interface ProbeResult {
  readonly responds: boolean;
  /** Code of the connection's error, as of Node; empty when the server responds. */
  readonly code: string;
  /** Whether exportd connects without TLS to a server that has it. */
  readonly needsTls: boolean;
}

/**
 * Connects to Temporal's address as gRPC does and waits for the first bytes, because gRPC libraries report every failed
 * connection as a timeout.
 */
export async function probeServer(settings: ConnectionSettings, timeoutMs: number): Promise<ProbeResult> {
  const { address, tls } = connectionOptions(settings);
  const { hostname, port } = new URL(`tcp://${address}`);
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
  if (!tls) {
    const code = await firstResponse(connectPlain(target), timeoutMs);
    const needsTls = closedCodes.has(code) && (await speaksTls(target, timeoutMs));
    return { responds: code === '', code, needsTls };
  }
  const { serverRootCACertificate: ca, clientCertPair: pair, serverNameOverride } = tls === true ? {} : tls;
  const options: ConnectionOptions = {
    ...target,
    ALPNProtocols: ['h2'],
    ...(ca && { ca: Buffer.from(ca) }),
    ...(pair && { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) }),
    ...serverName(serverNameOverride ?? target.host),
  };
  const socket = connectTls(options);
  const handshake = { isCompleted: false };
  socket.once('secureConnect', () => (handshake.isCompleted = true));
  const code = await firstResponse(socket, timeoutMs);
  // Some servers reject the certificate of a client after the handshake, and say nothing.
  const isRejected = handshake.isCompleted && pair !== undefined && closedCodes.has(code);
  return { responds: code === '', code: isRejected ? 'ERR_TLS_CLIENT_REJECTED' : code, needsTls: false };
}

/** Codes of a server that closes the connection. */
const closedCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** An address is no server name, but certificates may have it. */
const serverName = (name: string): ConnectionOptions => (isIP(name) ? { host: name } : { servername: name });

/** Waits for the first bytes of an HTTP/2 server. Returns the code of the error; empty when the bytes came. */
async function firstResponse(socket: Socket, timeoutMs: number): Promise<string> {
  const outcome = Promise.withResolvers<string>();
  const timeout = setTimeout(() => outcome.resolve('ETIMEDOUT'), timeoutMs);
  socket.on('error', (error: NodeJS.ErrnoException) => outcome.resolve(error.code ?? error.name));
  socket.once('close', () => outcome.resolve('ECONNRESET'));
  // A server that expects TLS may send a record of TLS, whose first byte no first frame of HTTP/2 has.
  socket.once('data', (bytes) => outcome.resolve(bytes[0] === 0 ? '' : 'ECONNRESET'));
  socket.write(clientPreface);
  try {
    return await outcome.promise;
  } finally {
    clearTimeout(timeout);
    socket.destroy();
  }
}

/** Whether a server completes the handshake of TLS, whatever its certificate. */
async function speaksTls(target: { host: string; port: number }, timeoutMs: number): Promise<boolean> {
  const socket = connectTls({ ...target, rejectUnauthorized: false, ...serverName(target.host) });
  socket.setTimeout(timeoutMs);
  try {
    return await new Promise((resolve) => {
      socket.once('secureConnect', () => resolve(true));
      for (const event of ['error', 'close', 'timeout']) socket.on(event, () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}
