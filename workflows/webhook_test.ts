/** The job that sends a message of the type `test` to a webhook. */
export { job as exportdWebhookTest } from './job.ts';
