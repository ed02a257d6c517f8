import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { createPool } from '../../src/journal/database.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import { openPostgresqlTlsProxy, type PostgresqlTlsProxy } from '../setup/postgresql_tls_proxy.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf, wholeRange } from './rows.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';

const authority = createCertificateAuthority();
const otherAuthority = createCertificateAuthority('another CA');
const client = authority.issue('exportd');
const files = {
  authority: authority.certificate,
  otherAuthority: otherAuthority.certificate,
  clientCertificate: client.certificate,
  clientKey: client.key,
};
const paths = {} as Record<keyof typeof files, string>;

const database = useTestDatabase();
let named: PostgresqlTlsProxy;
let addressed: PostgresqlTlsProxy;
let mutual: PostgresqlTlsProxy;
beforeAll(async () => {
  const folder = mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'tls-'));
  for (const [name, pem] of Object.entries(files)) {
    paths[name as keyof typeof files] = join(folder, `${name}.pem`);
    writeFileSync(paths[name as keyof typeof files], pem);
  }
  named = await openPostgresqlTlsProxy(database.url, authority.issue('localhost'));
  addressed = await openPostgresqlTlsProxy(database.url, authority.issue('127.0.0.1'));
  mutual = await openPostgresqlTlsProxy(database.url, authority.issue('localhost'), authority.certificate);
  await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
    select 1, gen_random_uuid(), 'event', 'user', jsonb_build_object('text', repeat('x', 2000)), t, t
    from generate_series(1, 200) n, lateral (select timestamptz '2026-11-01 10:00Z' + n * interval '1 second' as t) times`);
});
afterAll(() => Promise.all([named, addressed, mutual].map((proxy) => proxy.close())));

/** Connects as exportd does with this URL in its settings. */
async function connectWith(
  url: string,
): Promise<'connected' | { readonly type: string; readonly owner: string }> {
  const pool = createPool(readSettings({ DATABASE_URL: url }).DATABASE_URL, { max: 1 });
  try {
    await pool.query('select 1');
    return 'connected';
  } catch (error) {
    const { type, owner } = classifyError(error);
    return { type, owner };
  } finally {
    await pool.end();
  }
}
const tlsError = { type: 'DatabaseTlsError', owner: 'operator' };

describe('the TLS modes of PostgreSQL', () => {
  it('encrypt without verifying the certificate: require', async () => {
    const before = named.secured;
    expect(await connectWith(named.urlAt('localhost', { sslmode: 'require' }))).toBe('connected');
    expect(named.secured).toBe(before + 1);
  });

  it('verify the authority: verify-ca, and require with an authority', async () => {
    for (const sslmode of ['verify-ca', 'require']) {
      const trusted = { sslmode, sslrootcert: paths.authority };
      const untrusted = { sslmode, sslrootcert: paths.otherAuthority };
      // The certificate is of another host.
      expect(await connectWith(named.urlAt('127.0.0.1', trusted))).toBe('connected');
      expect(await connectWith(named.urlAt('localhost', untrusted))).toEqual(tlsError);
    }
  });

  it('verify the authority and the host: verify-full', async () => {
    const trusted = { sslmode: 'verify-full', sslrootcert: paths.authority };
    expect(await connectWith(named.urlAt('localhost', trusted))).toBe('connected');
    expect(await connectWith(named.urlAt('127.0.0.1', trusted))).toEqual(tlsError);
    expect(await connectWith(addressed.urlAt('127.0.0.1', trusted))).toBe('connected');
    expect(await connectWith(addressed.urlAt('localhost', trusted))).toEqual(tlsError);
  });

  it('trust only public authorities without sslrootcert, and with sslrootcert=system', async () => {
    const modes = [{ sslmode: 'verify-full' }, { sslmode: 'verify-full', sslrootcert: 'system' }];
    for (const parameters of modes)
      expect(await connectWith(named.urlAt('localhost', parameters))).toEqual(tlsError);
  });

  it('present a certificate of the client: sslcert and sslkey', async () => {
    const trusted = { sslmode: 'verify-full', sslrootcert: paths.authority };
    const certificate = { sslcert: paths.clientCertificate, sslkey: paths.clientKey };
    expect(await connectWith(mutual.urlAt('localhost', { ...trusted, ...certificate }))).toBe('connected');
    expect(await connectWith(mutual.urlAt('localhost', trusted))).not.toBe('connected');
  });

  it('report a server without TLS as an error of the operator', async () => {
    const url = new URL(database.url);
    url.searchParams.set('sslmode', 'require');
    expect(await connectWith(url.href)).toEqual(tlsError);
  });
});

describe('a source with TLS', () => {
  it('is read like one without', async () => {
    const url = named.urlAt('localhost', { sslmode: 'verify-full', sslrootcert: paths.authority });
    const [encrypted, plain] = [
      sourceOf(readSettings({ DATABASE_URL: url }).DATABASE_URL),
      sourceOf(database.url),
    ];
    const pool = createEncoderPool({ threads: 1 });
    try {
      const before = named.secured;
      const rows = async (source: typeof encrypted) =>
        (await blocksOf(source, hourOf('events'), { blockBytes: 10_000 })).flatMap(rowsOf);
      expect(await rows(encrypted)).toEqual(await rows(plain));
      const options = { blockBytes: 10_000, signal: neverAborted(), threads: pool.pageThreads };
      let rowsInThread = 0;
      for await (const block of encrypted.heldBlocks(hourOf('events'), wholeRange, options)) {
        rowsInThread += block.rows;
        pool.pageThreads.drop(block);
      }
      expect(rowsInThread).toBe(200);
      expect(await encrypted.fingerprint(hourOf('events'))).toEqual(
        await plain.fingerprint(hourOf('events')),
      );
      expect(named.secured).toBeGreaterThan(before);
    } finally {
      await Promise.all([encrypted.close(), plain.close(), pool.close()]);
    }
  });
});
