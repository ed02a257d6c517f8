import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { SettingsError } from '../config/settings.ts';
import type { ErrorOwner } from '../domain/errors.ts';
import { rejectionIn, rejectionMessages } from '../failures/grpc_errors.ts';
import { storeProcessFault } from '../failures/operator_faults.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { connectionOptions, type ConnectionSettings } from './connections.ts';
import { SearchAttributesMissing } from './search_attributes.ts';

const defaultPort = 7233;

/** What a client of HTTP/2 sends first: the connection preface and an empty SETTINGS frame. */
const clientPreface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** The outcome of a probe. */
interface ProbeResult {
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
async function probeServer(settings: ConnectionSettings, timeoutMs: number): Promise<ProbeResult> {
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

/** Why exportd cannot work with Temporal. */
interface TemporalProblem {
  readonly type: string;
  /** What happened and what to change. */
  readonly message: string;
  /** The operator, if it does not pass by itself. */
  readonly owner: ErrorOwner;
}

const probeTimeoutMs = 5_000;
const hostNotFoundCodes: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN']);
const tlsCodes = /CERT|^(ERR_TLS_|ERR_SSL_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH$|EPROTO$)/;

/**
 * Describes why a request to Temporal failed. Probes the server if the error does not say it.
 */
export async function describeProblem(
  error: unknown,
  settings: ConnectionSettings,
): Promise<TemporalProblem> {
  if (error instanceof SearchAttributesMissing)
    return { type: error.name, message: error.message, owner: 'operator' };
  const rejection = rejectionIn(error);
  if (rejection) return { type: rejection, message: rejectionMessages[rejection], owner: 'operator' };
  const { code, needsTls, responds } = await probeServer(settings, probeTimeoutMs);
  if (needsTls)
    return {
      type: 'TemporalTlsError',
      message: 'The server at TEMPORAL_ADDRESS requires TLS. Set TEMPORAL_TLS=true.',
      owner: 'operator',
    };
  if (hostNotFoundCodes.has(code))
    return {
      type: 'TemporalHostNotFound',
      message: `The name of Temporal's host could not be resolved (${code}). Check DNS and TEMPORAL_ADDRESS.`,
      owner: 'operator',
    };
  if (tlsCodes.test(code))
    return {
      type: 'TemporalTlsError',
      message: `The TLS connection to Temporal failed (${code}). Check TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME, and the certificate and key of exportd.`,
      owner: 'operator',
    };
  const reason = responds ? 'it accepts connections but not this request' : code;
  return {
    type: 'TemporalUnavailable',
    message: `Temporal does not respond (${reason}). Check that it is up.`,
    owner: 'none',
  };
}

/** Reports why a process cannot work with Temporal. */
interface ProblemReporter {
  /** Runs `work` once, and reports its error before throwing it. */
  watch<Result>(work: () => Promise<Result>): Promise<Result>;
  /**
   * Repeats `work` until it succeeds.
   * @throws SettingsError when a certificate cannot be read, and the signal's reason when it is aborted
   */
  retry<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

const initialDelayMs = 500;
const maxDelayMs = 5_000;
/** A problem that lasts is logged again after this time. */
const repeatedLogMs = 300_000;

/**
 * Creates the reporter of a process. A problem is one line of the log, however often a request fails; the operator's are
 * an alarm too.
 */
export function createProblemReporter(
  pool: Pool,
  settings: ConnectionSettings,
  logger: Logger,
): ProblemReporter {
  let latest: { readonly message: string; readonly loggedAt: number } | undefined;
  const where = {
    temporal_address: settings.TEMPORAL_ADDRESS,
    temporal_namespace: settings.TEMPORAL_NAMESPACE,
  };

  const log = (
    { type, message, owner }: TemporalProblem,
    error: unknown,
    incident_id: string | undefined,
  ): void => {
    if (latest?.message === message && performance.now() < latest.loggedAt + repeatedLogMs) return;
    latest = { message, loggedAt: performance.now() };
    const detail = error instanceof Error ? error.message : String(error);
    if (owner === 'operator') logger.error({ operator_fault: type, incident_id, ...where, detail }, message);
    else logger.warn({ problem: type, ...where, detail }, message);
  };
  const report = async (error: unknown): Promise<void> => {
    if (error instanceof SettingsError) return;
    const problem = await describeProblem(error, settings);
    const opened =
      problem.owner === 'operator'
        ? await storeProcessFault(pool, problem).catch((err: unknown) => {
            logger.warn({ err }, "An operator's fault could not be stored. Trying again.");
            return undefined;
          })
        : undefined;
    log(problem, error, opened?.incident_id);
  };
  const watch: ProblemReporter['watch'] = async (work) => {
    try {
      const result = await work();
      if (latest) logger.info(where, 'Temporal works again.');
      latest = undefined;
      return result;
    } catch (error) {
      await report(error);
      throw error;
    }
  };
  return {
    watch,
    retry: async (work, signal) => {
      for (let delayMs = initialDelayMs; ; delayMs = Math.min(delayMs * 2, maxDelayMs)) {
        signal.throwIfAborted();
        try {
          return await watch(work);
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof SettingsError) throw error;
          await wait(delayMs, undefined, { signal });
        }
      }
    },
  };
}
