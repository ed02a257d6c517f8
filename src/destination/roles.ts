/**
 * Which roles the credentials of exportd's machine assume. A person who may edit an export names a role, and exportd must not become
 * the deputy of one that trusts its machine for another reason: AWS checks an external id only if the role demands one.
 */
import { randomUUID } from 'node:crypto';
import { HttpRequest } from '@smithy/core/protocols';
import { Hash } from '@smithy/core/serde';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Settings } from '../config/settings.ts';
import { accountOfRole } from './config.ts';
import { DestinationError } from './destination.ts';
import type { S3RequestHandler } from './responses.ts';

/** How exportd's machine uses AWS STS. */
interface RoleChecks {
  readonly settings: Pick<Settings, 'EXPORTD_ROLE_ACCOUNTS'>;
  /** Assumes the role with another external id. */
  readonly assumeWith: (externalId: string) => Promise<unknown>;
  /** The AWS account of the machine. */
  readonly ownAccount: () => Promise<string>;
}

/** How long a role counts as checked, in milliseconds: AWS logs each check as a denied request. */
const checkedMs = 24 * 3_600_000;
/** Roles that are remembered; any other is checked again. */
const maxCheckedRoles = 10_000;
/** When each role was checked. */
const checks = new WeakMap<RoleChecks['settings'], Map<string, number>>();

/**
 * Requires that a role demands the external id of its project, and that it is of another account than exportd's machine, unless
 * EXPORTD_ROLE_ACCOUNTS lists that.
 * @throws DestinationError `RoleNotAllowed`, or the error of AWS STS
 */
export async function requireGuardedRole(
  roleArn: string,
  { settings, assumeWith, ownAccount }: RoleChecks,
): Promise<void> {
  const checked = checks.get(settings) ?? new Map<string, number>();
  checks.set(settings, checked);
  const checkedAt = checked.get(roleArn);
  if (checkedAt !== undefined && performance.now() - checkedAt < checkedMs) return;
  // `parseS3Config` has compared the account with the list.
  if (settings.EXPORTD_ROLE_ACCOUNTS === undefined && (await ownAccount()) === accountOfRole(roleArn))
    throw notAllowed(
      'it is of the AWS account of exportd itself. Use a role of the account of the bucket, or access keys',
    );
  if (await isAccepted(assumeWith(randomUUID())))
    throw notAllowed(
      'it does not demand an external id, so that every user of exportd who knows its name could use it. Let its trust policy demand the external_id of this destination as sts:ExternalId',
    );
  if (checked.size >= maxCheckedRoles) checked.clear();
  checked.set(roleArn, performance.now());
}

/** Lets a role be checked again before it is assumed. */
export const forgetRole = (roleArn: string, settings: RoleChecks['settings']): void =>
  void checks.get(settings)?.delete(roleArn);

const notAllowed = (reason: string): DestinationError =>
  new DestinationError('RoleNotAllowed', `exportd does not assume the role of the destination: ${reason}.`, {
    transient: false,
  });

/** Whether AWS accepts a request, and does not deny it. */
const isAccepted = (assuming: Promise<unknown>): Promise<boolean> =>
  assuming.then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && error.name === 'AccessDenied') return false;
      throw error;
    },
  );

type Identity = ConstructorParameters<typeof SignatureV4>[0]['credentials'];

class Sha256 extends Hash {
  constructor(secret?: ConstructorParameters<typeof Hash>[1]) {
    super('sha256', secret);
  }
}

/** The AWS account of credentials. @throws the error of the handler, or DestinationError */
export async function accountOf({
  identity,
  region,
  requestHandler,
}: {
  readonly identity: Identity;
  readonly region: string;
  readonly requestHandler: S3RequestHandler;
}): Promise<string> {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The SDK knows this variable too.
  const endpoint = new URL(process.env.AWS_ENDPOINT_URL_STS ?? `https://sts.${region}.${domain}`);
  const signer = new SignatureV4({ service: 'sts', region, credentials: identity, sha256: Sha256 });
  const body = 'Action=GetCallerIdentity&Version=2011-06-15';
  const signed = await signer.sign(
    new HttpRequest({
      method: 'POST',
      protocol: endpoint.protocol,
      hostname: endpoint.hostname,
      ...(endpoint.port !== '' && { port: Number(endpoint.port) }),
      path: '/',
      headers: {
        host: endpoint.host,
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.length),
      },
      body,
    }),
  );
  const { response } = await requestHandler.handle(new HttpRequest(signed));
  const xml = Buffer.from(response.body as Uint8Array).toString('latin1');
  const [, account] = /<Account>(\d{12})<\/Account>/.exec(xml) ?? [];
  if (account === undefined)
    throw new DestinationError(
      'AssumeRoleFailed',
      `AWS STS did not say whose credentials exportd's machine has (status ${response.statusCode}).`,
      { transient: true },
    );
  return account;
}
