import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/config/settings.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';

const password = 'correct-horse';
let file: string;
beforeAll(() => {
  file = join(mkdtempSync(join(tmpdir(), 'exportd-')), 'ca.pem');
  writeFileSync(file, createCertificateAuthority().certificate);
});
const urlWith = (parameters: string) => `postgresql://exportd:${password}@db.example/exportd?${parameters}`;
const read = (url: string) => readSettings({ DATABASE_URL: url }).DATABASE_URL;

describe('the URL of a database', () => {
  it('stays as it is without TLS parameters', () => {
    for (const url of [urlWith(''), urlWith('application_name=x'), 'postgresql:///exportd', 'no URL'])
      expect(read(url)).toBe(url);
  });

  it.each(['disable', 'require', 'verify-full'])('has the meaning of libpq with sslmode=%s', (mode) => {
    const { searchParams } = new URL(read(urlWith(`sslmode=${mode}`)));
    expect(Object.fromEntries(searchParams)).toEqual({ sslmode: mode, uselibpqcompat: 'true' });
  });

  it.each([
    ['sslmode=prefer', 'sslmode must be one of'],
    ['sslmode=allow', 'sslmode must be one of'],
    ['sslmode=verify-ca', 'sslrootcert'],
    ['sslmode=require&sslrootcert=system', 'verify-full'],
    [
      'sslmode=verify-full&sslrootcert=/nowhere/ca.pem',
      '/nowhere/ca.pem of sslrootcert cannot be read (ENOENT)',
    ],
    ['sslmode=verify-full&sslcert=/nowhere/client.pem', 'sslkey'],
    ['sslrootcert=/nowhere/ca.pem', 'sslmode=verify-full'],
  ])('is rejected with %s, without its password', (parameters, message) => {
    const error: unknown = (() => {
      try {
        return read(urlWith(parameters));
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(SettingsError);
    expect(String(error)).toContain(message);
    expect(String(error)).toContain('DATABASE_URL');
    expect(String(error)).not.toContain(password);
  });

  it('names files that can be read', () => {
    expect(
      new URL(read(urlWith(`sslmode=verify-ca&sslrootcert=${file}`))).searchParams.get('sslrootcert'),
    ).toBe(file);
  });
});

describe('the CA bundle of S3', () => {
  const readBundle = (path: string) =>
    readSettings({ DATABASE_URL: 'unused', EXPORTD_S3_CA_BUNDLE: path }).EXPORTD_S3_CA_BUNDLE;

  it('is the text of its file', () => {
    expect(readBundle(file)).toContain('BEGIN CERTIFICATE');
    expect(readSettings({ DATABASE_URL: 'unused' }).EXPORTD_S3_CA_BUNDLE).toBeUndefined();
  });

  it.each(['/nowhere/ca.pem', import.meta.filename])('is rejected when it is no PEM file: %s', (path) => {
    expect(() => readBundle(path)).toThrow(`EXPORTD_S3_CA_BUNDLE is ${path}`);
  });
});
