import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { type FakeServer, startFakeServer } from '../destination/fake_server.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';

const role_arn = 'arn:aws:iam::123456789012:role/exports';
const machineAccount = '999999999999';
const variables = {
  AWS_ACCESS_KEY_ID: 'AKIAMACHINE',
  AWS_SECRET_ACCESS_KEY: 'machine-secret',
  AWS_ENDPOINT_URL_STS: '',
};
const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));

let api: ApiHarness;
let sts: FakeServer;
/** Whether AWS accepts every external id. */
let acceptsAnyId: boolean;

const xmlOf = (action: string, result: string) =>
  `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>${result}</${action}Result></${action}Response>`;

beforeAll(async () => {
  api = await openApiHarness();
  const { body } = await api.call('GET', '/api/projects/');
  const [project] = body.results as { id: number; external_id: string }[];
  sts = await startFakeServer(({ body: form }, response) => {
    const fields = new URLSearchParams(form);
    const action = fields.get('Action') ?? '';
    const isOwn = fields.get('ExternalId') === project?.external_id;
    if (action === 'GetCallerIdentity') response.end(xmlOf(action, `<Account>${machineAccount}</Account>`));
    else if (isOwn || acceptsAnyId)
      response.end(
        xmlOf(
          action,
          `<Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
           <SessionToken>token</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>`,
        ),
      );
    else
      response
        .writeHead(403)
        .end(`<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code></Error></ErrorResponse>`);
  });
  Object.assign(process.env, { ...variables, AWS_ENDPOINT_URL_STS: sts.endpoint });
});
beforeEach(() => {
  acceptsAnyId = false;
  api.mode = 'decide';
});
afterAll(async () => {
  for (const [name, value] of Object.entries(before))
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  await sts.close();
  await api.close();
});

const create = (config: object) =>
  api.call('POST', 'batch_exports/', {
    name: 'Events',
    model: 'events',
    interval: 'hour',
    destination: {
      type: 'S3',
      config: { bucket_name: 'bucket', region: 'eu-west-1', prefix: 'events', ...config },
    },
  });
const keys = { aws_access_key_id: 'AKIAOWNER', aws_secret_access_key: 'owner-secret' };

it('a role is saved if it demands the external id of its project', async () => {
  const { status, body } = await create({ role_arn });
  expect([status, body.destination]).toMatchObject([201, { config: { role_arn } }]);
  const asked = sts.received.length;
  // Nothing of the role changes.
  const renamed = await api.call('PATCH', `batch_exports/${String(body.id)}/`, {
    destination: { type: 'S3', config: { prefix: 'other' } },
  });
  expect([renamed.status, sts.received.length]).toEqual([200, asked]);
});

it('a role is not saved if AWS accepts another external id, or its account is that of the machine', async () => {
  acceptsAnyId = true;
  const withKeys = await create({ ...keys, role_arn });
  expect(withKeys.status).toBe(201);
  const path = `batch_exports/${String(withKeys.body.id)}/`;
  const withoutKeys = { aws_access_key_id: null, aws_secret_access_key: null };
  const own = `arn:aws:iam::${machineAccount}:role/anything`;
  for (const [response, reason] of [
    [await create({ role_arn }), 'it does not demand an external id'],
    [await create({ role_arn: own }), 'it is of the AWS account of exportd itself'],
    [
      await api.call('PATCH', path, { destination: { type: 'S3', config: withoutKeys } }),
      'it does not demand an external id',
    ],
  ] as const)
    expect([response.status, response.body]).toMatchObject([
      400,
      { attr: 'destination__config__role_arn', detail: expect.stringContaining(reason) },
    ]);
  const { body } = await api.call('GET', 'batch_exports/');
  expect(body.count).toBe(2);
});
