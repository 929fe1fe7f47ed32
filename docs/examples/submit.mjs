// Submits the job on standard input: node submit.mjs <job.json >result
// node's fetch gives up after five minutes without a byte; a job may last longer.
import { request } from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const url = (process.env.PILOTFISH_URL ?? "http://127.0.0.1:8080") + "/v1/jobs";
const headers = { "Content-Type": "application/json" };

function post(job) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", headers: { ...headers, "Content-Length": job.length } }, async (response) => {
      try {
        resolve({ status: response.statusCode, headers: response.headers, body: await buffer(response) });
      } catch (cut) {
        reject(cut); // the response was truncated
      }
    });
    sent.on("error", reject).end(job);
  });
}

async function submit(job) {
  for (let attempt = 0; ; attempt++) {
    let wait = 2 ** attempt;
    try {
      const response = await post(job);
      const after = response.headers["retry-after"];
      const undone = after || ["no", "withdrawn"].includes(response.headers["job-started"]);
      if (attempt === 4 || ![429, 503].includes(response.status) || !undone) return response;
      wait = Math.max(wait, Number(after ?? 0));
    } catch (error) {
      if (attempt === 4 || error.code !== "ECONNREFUSED") throw error; // the job may have run
    }
    console.error(`nothing was done; again in ${wait} s`);
    await sleep(1000 * wait);
  }
}

const response = await submit(await buffer(process.stdin));
(response.status === 200 ? process.stdout : process.stderr).write(response.body);
process.exitCode = response.status === 200 ? 0 : 1;
