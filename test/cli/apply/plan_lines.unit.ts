import { describe, expect, it } from '@jest/globals';
import { planLines, updateBodyOf } from '../../../src/cli/apply/plan.ts';

describe('a plan', () => {
  it('is a diff without secrets', () => {
    const secret = 'destination.config.aws_secret_access_key';
    expect(
      planLines([
        {
          action: 'create',
          name: 'Clicks',
          id: null,
          fields: [
            { field: 'interval', secret: false, from: null, to: 'hour' },
            { field: secret, secret: true, from: null, to: null },
          ],
        },
        {
          action: 'update',
          name: 'Persons',
          id: '1',
          fields: [
            { field: 'timezone', secret: false, from: 'Europe/Berlin', to: null },
            { field: 'destination.config.prefix', secret: false, from: 'old', to: 'new' },
            { field: secret, secret: true, from: null, to: null },
          ],
        },
        { action: 'unchanged', name: 'Orders', id: '2', fields: [] },
        { action: 'delete', name: 'Old', id: '3', fields: [] },
        { action: 'undeclared', name: 'Other', id: '4', fields: [] },
      ]),
    ).toEqual([
      '+ create Clicks',
      '    interval: "hour"',
      '    destination.config.aws_secret_access_key: set (secret)',
      '~ update Persons',
      '    timezone: "Europe/Berlin" → default',
      '    destination.config.prefix: "old" → "new"',
      '    destination.config.aws_secret_access_key: changed (secret)',
      '  unchanged: Orders',
      '- delete Old; its objects stay in the bucket',
      '  not in the file: Other; --prune deletes it',
      '1 to create, 1 to update, 1 to delete, 1 unchanged.',
    ]);
  });

  it('resets what the file leaves out, and keeps pauses and secrets', () => {
    const current = {
      name: 'Clicks',
      destination: { type: 'S3', config: { prefix: 'old', compression: 'gzip' } },
    };
    const declared = { name: 'Clicks', destination: { type: 'S3', config: { prefix: 'new' } } };
    const body = updateBodyOf(declared, current);
    expect(body).toMatchObject({
      name: 'Clicks',
      interval: 'hour',
      model: null,
      timezone: null,
      retention_days: null,
      destination: { type: 'S3', config: { prefix: 'new', compression: null } },
    });
    expect(body).not.toHaveProperty('paused');
  });
});
