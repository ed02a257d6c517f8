import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createKeyRing, SecretUnreadable } from '../../src/config/key_ring.ts';
import { SettingsError } from '../../src/config/settings.ts';

const key = (): string => randomBytes(32).toString('base64');

describe('the key ring', () => {
  it('opens secrets that the first or an older key sealed', () => {
    const [older, newer] = [`a:${key()}`, `b:${key()}`];
    const sealed = createKeyRing(older).seal('the secret', 'location');
    expect(sealed).not.toContain('the secret');
    expect(createKeyRing(`${newer},${older}`).open(sealed, 'location')).toBe('the secret');
    expect(createKeyRing(`${newer},${older}`).seal('x', 'location')).toMatch(/^b:/);
  });

  it('seals the same secret differently each time', () => {
    const ring = createKeyRing(`a:${key()}`);
    expect(ring.seal('secret', 'location')).not.toBe(ring.seal('secret', 'location'));
  });

  it('rejects secrets that were moved, changed, truncated or sealed with an unknown key', () => {
    const ring = createKeyRing(`a:${key()}`);
    const sealed = ring.seal('secret', 'location');
    const flipped = sealed.replace(/.(?==*$)/, (letter) => (letter === 'A' ? 'Q' : 'A'));
    expect(() => ring.open(sealed, 'another location')).toThrow(SecretUnreadable);
    expect(() => ring.open(flipped, 'location')).toThrow(SecretUnreadable);
    expect(() => ring.open(sealed.slice(0, 12), 'location')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`a:${key()}`).open(sealed, 'location')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`b:${key()}`).open(sealed, 'location')).toThrow('"a"');
  });

  it.each([undefined, ''])('rejects the setting %j', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
  });

  it.each(['nonsense', 'a:short', `:${key()}`])('rejects the setting %j without showing it', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
    expect(() => createKeyRing(setting)).not.toThrow(setting);
  });
});
