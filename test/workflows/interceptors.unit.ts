import { defaultPayloadConverter } from '@temporalio/common';
import { expect, it } from '@jest/globals';
import { bounds } from '../../src/config/bounds.ts';
import { normalizeIdentity, normalizeSignal } from '../../workflows/interceptors.ts';

// Workflows cannot import the page of bounds.

const inputOf = (bytes: number) => {
  const payload = defaultPayloadConverter.toPayload('x'.repeat(bytes - 2));
  const normalized = normalizeSignal('pause', [payload]).payload;
  return normalized === payload ? 'unchanged' : defaultPayloadConverter.fromPayload(normalized ?? payload);
};

it('a signal has the size that the page of bounds states', () => {
  const { signalInput, signalName, signalIdentity } = bounds;
  expect(inputOf(signalInput.max)).toBe('unchanged');
  expect(inputOf(signalInput.max + 1)).toBe(`(unreadable: ${signalInput.max + 1} bytes)`);
  const long = 'x'.repeat(1_000);
  expect(normalizeSignal(long, []).name).toHaveLength(signalName.max);
  expect(normalizeIdentity(long)).toHaveLength(signalIdentity.max);
});
