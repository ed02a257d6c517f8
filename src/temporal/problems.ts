import type { ErrorOwner } from '../domain/errors.ts';
import { rejectionIn, rejectionMessages } from '../failures/grpc_errors.ts';
import type { ConnectionSettings } from './connection_options.ts';
import { probeServer } from './probe_server.ts';
import { SearchAttributesMissing } from './search_attributes.ts';

/** Why exportd cannot work with Temporal. */
export interface TemporalProblem {
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
    owner: 'nobody',
  };
}
