import { describe, expect, it } from '@jest/globals';
import { createWebhookSecret, isWebhookSecret, signedHeaders } from '../../src/notifications/send_webhook.ts';

describe('a signature', () => {
  it('matches the example of Standard Webhooks', () => {
    // From the test vectors of the Standard Webhooks reference libraries.
    expect(
      signedHeaders(
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        'msg_p5jXN8AQM9LWM0D4loKWxJek',
        new Date(1_614_265_330_000),
        '{"test": 2432232314}',
      ),
    ).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });
});

describe('a secret', () => {
  it('is valid and unique', () => {
    const [one, other] = [createWebhookSecret(), createWebhookSecret()];
    expect([isWebhookSecret(one), isWebhookSecret(other), one === other]).toEqual([true, true, false]);
  });

  it.each(['', 'whsec_', 'whsec_c2hvcnQ=', `whsec_${'a'.repeat(200)}`, `whsec_${'!'.repeat(40)}`])(
    'is invalid as %j',
    (text) => {
      expect(isWebhookSecret(text)).toBe(false);
    },
  );
});
