-- Sends each job to the first queue, in this order, that takes its cores and its walltime. Written by qconf export.
-- slurm.conf needs JobSubmitPlugins=lua; this file goes beside it.

local QUEUES = { -- cores from least to most, walltime in seconds above `above` up to `upto`
   { name = "small", least = 1, most = 16, above = 0, upto = 86400 },
   { name = "medium", least = 17, most = 40, above = 0, upto = 86400 },
   { name = "large", least = 41, most = 96, above = 0, upto = 172800 },
}
local NODE = 8 -- cores of a node, where jobs are given whole nodes
local POOL = "pool" -- entered by qconf-promote only
local UNSET16, UNSET32, UNLIMITED = 65534, 4294967294, 4294967295 -- Slurm's NO_VAL16, NO_VAL and INFINITE
local PARTITION_UP = 3 -- takes jobs and starts them
local ACCESS_DENIED = 2002 -- what scontrol says of it; Slurm 22.05 gives users no other message there

local function given(value, unset)
   if value == nil or value == 0 or value >= (unset or UNSET32) then
      return nil
   end
   return value
end

local function whole(cores) -- of the nodes that hold so many
   return NODE and math.ceil(cores / NODE) * NODE or cores
end

local function cores_of(job)
   local tasks, each = given(job.num_tasks) or 1, given(job.cpus_per_task, UNSET16) or 1
   local nodes = given(job.min_nodes) or 1
   return whole(math.max(tasks * each, given(job.min_cpus) or 1, nodes * (NODE or 1)))
end

local function takes(queue, cores, walltime)
   return cores >= queue.least and cores <= whole(queue.most)
      and (walltime == nil or (walltime > queue.above and walltime <= queue.upto))
end

local function seconds_of(limit)
   local minutes = given(limit)
   return limit == UNLIMITED and math.huge or minutes and minutes * 60
end

local function queue_named(name)
   for _, queue in ipairs(QUEUES) do
      if queue.name == name then
         return queue
      end
   end
end

local function refused(message, ...)
   slurm.log_user(string.format(message, ...))
   return slurm.ERROR
end

-- Return what to say of a list of partitions, such as `-p small,medium`, that a job may not have; nil if it may. A job
-- that has a closed one in its list, and starts in another, would end with the closed one.
local function forbidden(partitions, cores, walltime, part_list)
   for name in string.gmatch(partitions, "[^,]+") do
      local queue, part = queue_named(name), part_list[name]
      if name == POOL or (part and part.state_up and part.state_up ~= PARTITION_UP) then
         return string.format("partition %s takes no submissions; leave -p out", name)
      elseif queue and not takes(queue, cores, walltime) then
         return string.format("partition %s does not take %d cores for that long; leave -p out", name, cores)
      end
   end
end

local function submit(job, part_list)
   local cores, walltime = cores_of(job), seconds_of(job.time_limit)
   if job.partition ~= nil then
      local why = forbidden(job.partition, cores, walltime, part_list)
      if why then
         return refused("%s", why)
      end
   end
   for _, queue in ipairs(QUEUES) do
      if (job.partition == nil or job.partition == queue.name) and takes(queue, cores, walltime) then
         job.partition = queue.name
         if walltime == nil and queue.upto < math.huge then
            job.time_limit = math.ceil(queue.upto / 60)
         end
         return slurm.SUCCESS
      end
   end
   if job.partition ~= nil then
      return slurm.SUCCESS -- none of ours, or several that take it
   end
   return refused("no queue takes a job of %d cores for that long", cores)
end

-- Users may change their own waiting jobs into what they may submit; operators may change all as they like.
local function modify(job, record, part_list, modify_uid)
   local resized = given(job.time_limit) or job.time_limit == UNLIMITED or given(job.min_cpus)
      or given(job.num_tasks) or given(job.cpus_per_task, UNSET16) or given(job.min_nodes)
   local pending = record.job_state == 0 and record.partition ~= POOL
   local partition = job.partition or (resized and pending and record.partition)
   if modify_uid == 0 or modify_uid ~= record.user_id or not partition then
      return slurm.SUCCESS
   end
   local cores = cores_of({
      num_tasks = job.num_tasks, cpus_per_task = job.cpus_per_task,
      min_cpus = given(job.min_cpus) or record.min_cpus, min_nodes = given(job.min_nodes) or record.min_nodes,
   })
   local walltime = seconds_of(job.time_limit) or seconds_of(record.time_limit)
   local why = forbidden(partition, cores, walltime, part_list)
   if why then
      slurm.log_info("qconf: job %s of uid %d: %s", tostring(record.job_id), modify_uid, why)
      return ACCESS_DENIED
   end
   return slurm.SUCCESS
end

-- The site's own job_submit.lua lies beside this file as job_submit.site.lua, if it had one. It goes first: what it
-- refuses is refused, and what it changes is what this one sees.
local function of_the_site()
   local file = io.open("/etc/slurm/job_submit.site.lua")
   if file == nil then
      return
   end
   file:close()
   slurm_job_submit, slurm_job_modify = nil, nil
   dofile("/etc/slurm/job_submit.site.lua")
   return slurm_job_submit, slurm_job_modify
end

local first_submit, first_modify = of_the_site()

function slurm_job_submit(job, part_list, submit_uid)
   local found = first_submit and first_submit(job, part_list, submit_uid) or slurm.SUCCESS
   return found == slurm.SUCCESS and submit(job, part_list) or found
end

function slurm_job_modify(job, record, part_list, modify_uid)
   local found = first_modify and first_modify(job, record, part_list, modify_uid) or slurm.SUCCESS
   return found == slurm.SUCCESS and modify(job, record, part_list, modify_uid) or found
end

slurm.log_info("qconf: routing to %d queues", #QUEUES)
return slurm.SUCCESS
