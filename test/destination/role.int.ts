import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { s3Settings, requestError } from './bucket_requests.ts';
import { startFakeServer, type FakeServer } from './fake_server.ts';

const role = 'arn:aws:iam::123456789012:role/exports';
const keys = { aws_access_key_id: 'AKIABASE', aws_secret_access_key: 'base-secret' };
const assumed = { id: 'ASIAASSUMED', secret: 'assumed-secret', token: 'assumed-token' };

const credentialsXml = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
  <Credentials><AccessKeyId>${assumed.id}</AccessKeyId><SecretAccessKey>${assumed.secret}</SecretAccessKey>
  <SessionToken>${assumed.token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
  </AssumeRoleResult></AssumeRoleResponse>`;
const errorXml = (code: string): string =>
  `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code>
  <Message>${keys.aws_access_key_id} is not allowed.</Message></Error></ErrorResponse>`;

let sts: FakeServer;
let store: FakeServer;
let stsResponse: { status: number; xml: string };
const environment = ['AWS_ENDPOINT_URL_STS', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
const before = environment.map((name) => process.env[name]);

beforeEach(async () => {
  stsResponse = { status: 200, xml: credentialsXml };
  sts = await startFakeServer((_, response) =>
    response.writeHead(stsResponse.status, { 'content-type': 'text/xml' }).end(stsResponse.xml),
  );
  store = await startFakeServer((_, response) => response.end());
  process.env.AWS_ENDPOINT_URL_STS = sts.endpoint;
});
afterEach(async () => {
  for (const [position, name] of environment.entries()) {
    const value = before[position];
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
  await sts.close();
  await store.close();
});

/** Sends one request to the store with this config; returns its error or null. */
const requestErrorOf = (config: object): Promise<unknown> =>
  requestError(
    { bucket_name: 'bucket', region: 'auto', prefix: '', endpoint_url: store.endpoint, ...config },
    s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' }),
  );

describe('a destination with a role', () => {
  it('assumes it with its keys and external id, and signs with the temporary credentials', async () => {
    expect(await requestErrorOf({ ...keys, role_arn: role, external_id: 'project-7' })).toBeNull();
    expect(sts.received).toHaveLength(1);
    const form = new URLSearchParams(sts.received[0]?.body);
    expect(Object.fromEntries(form)).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: role,
      ExternalId: 'project-7',
      RoleSessionName: 'exportd',
    });
    expect(sts.received[0]?.headers.authorization).toContain(`Credential=${keys.aws_access_key_id}/`);
    expect(store.received[0]?.headers.authorization).toContain(`Credential=${assumed.id}/`);
    expect(store.received[0]?.headers['x-amz-security-token']).toBe(assumed.token);
  });

  it('assumes it with the credentials of the machine if it has no keys', async () => {
    process.env.AWS_ACCESS_KEY_ID = 'AKIAMACHINE';
    process.env.AWS_SECRET_ACCESS_KEY = 'machine-secret';
    expect(await requestErrorOf({ role_arn: role })).toBeNull();
    expect(sts.received[0]?.headers.authorization).toContain('Credential=AKIAMACHINE/');
    expect(new URLSearchParams(sts.received[0]?.body).has('ExternalId')).toBe(false);
    expect(store.received[0]?.headers.authorization).toContain(`Credential=${assumed.id}/`);
  });

  it('fails permanently when the role is denied, without the message of AWS', async () => {
    stsResponse = { status: 403, xml: errorXml('AccessDenied') };
    const error = await requestErrorOf({ ...keys, role_arn: role });
    expect(error).toMatchObject({ name: 'DestinationError', type: 'AssumeRoleFailed', transient: false });
    expect((error as Error).message).toContain('could not be assumed (AccessDenied)');
    expect((error as Error).message).not.toContain(keys.aws_access_key_id);
    expect(store.received).toHaveLength(0);
  });

  it('fails with a transient error when AWS is busy or unreachable', async () => {
    stsResponse = { status: 400, xml: errorXml('Throttling') };
    expect(await requestErrorOf({ ...keys, role_arn: role })).toMatchObject({
      type: 'AssumeRoleFailed',
      transient: true,
    });
    await sts.close();
    expect(await requestErrorOf({ ...keys, role_arn: role })).toMatchObject({
      type: 'StsUnreachable',
      transient: true,
    });
  });
});

describe('a destination without keys and without a role', () => {
  it('never sends anything signed by the machine to a server that a user chose', async () => {
    process.env.AWS_ACCESS_KEY_ID = 'AKIAMACHINE';
    process.env.AWS_SECRET_ACCESS_KEY = 'machine-secret';
    await expect(requestErrorOf({})).rejects.toMatchObject({
      name: 'CommandRejected',
      attr: 'destination__config__aws_access_key_id',
    });
    expect([store.received, sts.received]).toEqual([[], []]);
  });
});
