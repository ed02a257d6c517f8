import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { createKeyRing, SecretUnreadable } from '../../src/config/key_ring.ts';
import { SettingsError } from '../../src/config/settings.ts';

const key = (): string => randomBytes(32).toString('base64');

describe('the key ring', () => {
  it('opens what it sealed, and under an older key too', () => {
    const [older, newer] = [`a:${key()}`, `b:${key()}`];
    const sealed = createKeyRing(older).seal('the secret', 'place');
    expect(sealed).not.toContain('the secret');
    expect(createKeyRing(`${newer},${older}`).open(sealed, 'place')).toBe('the secret');
    expect(createKeyRing(`${newer},${older}`).seal('x', 'place')).toMatch(/^b:/);
  });

  it('never seals the same secret to the same text', () => {
    const ring = createKeyRing(`a:${key()}`);
    expect(ring.seal('secret', 'place')).not.toBe(ring.seal('secret', 'place'));
  });

  it('opens nothing that was moved, changed, cut or sealed by a stranger', () => {
    const ring = createKeyRing(`a:${key()}`);
    const sealed = ring.seal('secret', 'place');
    const flipped = sealed.replace(/.(?==*$)/, (letter) => (letter === 'A' ? 'Q' : 'A'));
    expect(() => ring.open(sealed, 'another place')).toThrow(SecretUnreadable);
    expect(() => ring.open(flipped, 'place')).toThrow(SecretUnreadable);
    expect(() => ring.open(sealed.slice(0, 12), 'place')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`a:${key()}`).open(sealed, 'place')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`b:${key()}`).open(sealed, 'place')).toThrow('"a"');
  });

  it.each([undefined, ''])('refuses the setting %j', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
  });

  it.each(['nonsense', 'a:short', `:${key()}`])('refuses the setting %j without showing it', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
    expect(() => createKeyRing(setting)).not.toThrow(setting);
  });
});
